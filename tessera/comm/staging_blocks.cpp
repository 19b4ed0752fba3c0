#include "tessera/comm/staging_blocks.h"

#include <algorithm>
#include <bit>

namespace tessera {

StagingBlock StagingBlocks::lend(DeviceQueue* queue, int64_t bytes) {
  constexpr int64_t kLeast = 4096;
  const auto wanted =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(bytes, kLeast))));
  std::vector<StagingBlock>& free = free_[{queue, wanted}];
  if (free.empty()) return {queue->host_memory(wanted), queue, wanted};
  StagingBlock block = std::move(free.back());
  free.pop_back();
  return block;
}

void StagingBlocks::take_back(StagingBlock block) {
  std::vector<StagingBlock>& free = free_[{block.queue, block.bytes}];
  free.push_back(std::move(block));
}

}  // namespace tessera
