#pragma once
// Blocks of the host's memory that a device copies from and to by itself, on loan. Such memory is
// slow to get and to give back, so a block is kept and lent again; and since a queue may not yet
// have read what it was lent for, it goes to the same queue only.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/comm/device_queue.h"

namespace tessera {

struct StagingBlock {
  std::shared_ptr<void> memory;
  DeviceQueue* queue = nullptr;
  int64_t bytes = 0;
  /// The queue may still read it, unless the host has waited for the queue since.
  bool queued = false;
};

class StagingBlocks {
 public:
  /// At least `bytes`. Sizes are powers of two: what is lent in one step suffices for another one
  /// with the same loans, whatever their order.
  StagingBlock lend(DeviceQueue* queue, int64_t bytes);
  void take_back(StagingBlock block);

 private:
  std::map<std::pair<DeviceQueue*, int64_t>, std::vector<StagingBlock>> free_;
};

}  // namespace tessera
