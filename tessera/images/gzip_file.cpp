#include "tessera/images/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

namespace tessera {
namespace {

constexpr size_t kPackingBytesAtOnce = 1 << 20;
constexpr int kGzipWindow = 15 + 16;  // the largest, and a header of gzip
constexpr int kMemoryLevel = 8;       // zlib's own choice

struct Deflater {
  z_stream stream{};
  Deflater() {
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Deflater() { deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
};

}  // namespace

void append_packed(const InputFile& from, OutputFile* to) {
  Deflater deflater;
  z_stream& stream = deflater.stream;
  std::vector<unsigned char> plain(kPackingBytesAtOnce), packed(kPackingBytesAtOnce);
  uint64_t done = 0;
  bool ended = false;
  while (!ended) {
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(from.size() - done, plain.size()));
    from.read_at(done, plain.data(), bytes);
    done += bytes;
    stream.next_in = plain.data();
    stream.avail_in = static_cast<uInt>(bytes);
    do {
      stream.next_out = packed.data();
      stream.avail_out = static_cast<uInt>(packed.size());
      ended = deflate(&stream, done == from.size() ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_END;
      to->append(packed.data(), packed.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  }
}

}  // namespace tessera
