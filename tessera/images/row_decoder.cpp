#include "tessera/images/row_decoder.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr size_t kMaxIdleDecoders = 4;

}  // namespace

/// The idle decoder with the fewest rows to drop, or a new one.
RowReader::Started RowReader::take(int64_t first_row) const {
  {
    const std::lock_guard lock(mutex_);
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it)
      if (it->next_row <= first_row && (best == idle_.end() || it->next_row > best->next_row))
        best = it;
    if (best != idle_.end()) {
      Started started = std::move(*best);
      idle_.erase(best);
      return started;
    }
  }
  return {open_(), 0};
}

void RowReader::read(const ArrayInfo& info, const Box& box, void* to) const {
  TESSERA_CHECK(box.num_axes() == std::ssize(info.shape) && Box::whole(info.shape).contains(box),
                "[array] box {} of {}", to_string(box), to_string(info.shape));
  if (box.empty()) return;
  const int64_t element = bytes_of(info.type);
  const bool has_channels = info.shape.size() == 3;
  const int64_t samples = has_channels ? info.shape[2] : 1;
  const Range channels = has_channels ? box[2] : Range{0, 1};
  Started started = take(box[0].begin);
  std::vector<char> row(static_cast<size_t>(info.shape[1] * samples * element));
  char* next = static_cast<char*>(to);
  for (; started.next_row < box[0].end; ++started.next_row) {
    started.decoder->read_row(row.data());
    if (started.next_row < box[0].begin) continue;
    const char* from = row.data() + (box[1].begin * samples + channels.begin) * element;
    const int64_t kept = channels.size() * element;
    if (channels.size() == samples) {
      std::memcpy(next, from, static_cast<size_t>(box[1].size() * kept));
      next += box[1].size() * kept;
      continue;
    }
    for (int64_t x = 0; x < box[1].size(); ++x, from += samples * element, next += kept)
      std::memcpy(next, from, static_cast<size_t>(kept));
  }
  if (started.next_row == info.shape[0]) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() == kMaxIdleDecoders) idle_.erase(idle_.begin());
  idle_.push_back(std::move(started));
}

}  // namespace tessera
