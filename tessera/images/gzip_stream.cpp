#include "tessera/images/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr size_t kPackedBytesAtOnce = 256 << 10;
constexpr int kGzipOnly = 15 + 16;  // the largest window, and a header of gzip

}  // namespace

struct GzipStream::State {
  z_stream stream{};
  std::vector<unsigned char> packed = std::vector<unsigned char>(kPackedBytesAtOnce);
  bool inside_member = false;

  State() {
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

GzipStream::GzipStream(const InputFile& file, std::string place)
    : file_(file), place_(std::move(place)), state_(std::make_unique<State>()) {}

GzipStream::~GzipStream() = default;

void GzipStream::refill() {
  const auto bytes =
      static_cast<size_t>(std::min<uint64_t>(file_.size() - position_, state_->packed.size()));
  file_.read_at(position_, state_->packed.data(), bytes);
  position_ += bytes;
  state_->stream.next_in = state_->packed.data();
  state_->stream.avail_in = static_cast<uInt>(bytes);
}

size_t GzipStream::read(void* to, size_t bytes) {
  z_stream& stream = state_->stream;
  const size_t most = std::min<size_t>(bytes, 1 << 30);
  stream.next_out = static_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(most);
  while (stream.avail_out > 0) {
    if (stream.avail_in == 0) refill();
    if (stream.avail_in == 0) {
      if (!state_->inside_member && file_.size() > 0) break;
      throw_error<InvalidInput>("[{}] {}: the gzip stream breaks off; the file is truncated",
                                place_, file_.path());
    }
    state_->inside_member = true;
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result == Z_STREAM_END) {
      inflateReset(&stream);
      state_->inside_member = false;
    } else if (result != Z_OK) {
      throw_error<InvalidInput>("[{}] {}: is not a gzip file, or a damaged one ({})", place_,
                                file_.path(), stream.msg == nullptr ? "no reason" : stream.msg);
    }
  }
  return most - stream.avail_out;
}

}  // namespace tessera
