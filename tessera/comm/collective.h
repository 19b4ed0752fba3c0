#pragma once
// A collective as a transport is asked for it. Callers use collectives.h, which checks members and
// sizes and leaves out what needs no communication: what arrives here has at least two members, and
// something to move.

#include <cstdint>
#include <vector>

#include "tessera/base/members.h"

namespace tessera {

class DeviceQueue;

enum class SumType { kFloat32, kFloat64 };

struct AllReduceCall {
  Members members;
  int own = 0;           // this rank's index in `members`; likewise below
  void* data = nullptr;  // the terms, and in the end the sums
  int64_t count = 0;
  SumType type = SumType::kFloat32;
  void* scratch = nullptr;       // of reduce_scratch() elements; null: the transport sees to it
  DeviceQueue* queue = nullptr;  // as a batch's; there must be scratch with it. Likewise below
};

struct AllGatherCall {
  Members members;
  int own = 0;
  std::vector<int64_t> block_bytes;  // per member; some may be 0
  void* gathered = nullptr;          // all blocks, of which the own one is there
  DeviceQueue* queue = nullptr;
};

struct BroadcastCall {
  Members members;
  int own = 0;
  int root = 0;  // an index in `members`
  void* data = nullptr;
  int64_t bytes = 0;
  DeviceQueue* queue = nullptr;
};

/// A started collective. Its memory stays valid and untouched until finish() returns or throws. One
/// that is destroyed unfinished aborts its transport, as an Outstanding does.
class Collective {
 public:
  virtual ~Collective() = default;

  /// Waits for one round of messages and posts the next, if there is one. All members call it as
  /// often, or none: where a transport has no rounds, nothing is done. Throws as finish() does.
  virtual void advance() {}
  /// Once. Throws what Transport::finish() throws.
  virtual void finish() = 0;
};

}  // namespace tessera
