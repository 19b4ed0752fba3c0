#pragma once
// Collectives over a list of ranks, as callers use them. How they are done is the transport's
// business; without anything better they are messages in a number of rounds that grows with the
// logarithm of the members (base/collective_rounds.h). All members get the same bits, whatever the
// timing. All but barrier and broadcast are split-phase: start posts what can be posted, finish
// waits and completes.
//
// Messages of a pair match by order and later rounds are posted in finish(), so all members start
// *and* finish their collectives in the same order. An object that is destroyed between start and
// finish (an exception unwinds) aborts the transport. Members that break their contract are a bug
// of ours: InternalError. Where there is one member, or nothing to move, nothing is done.
//
// With a queue all memory is that of its device, and the sums are made there: as with batches
// (transport.h), what is queued after finish() sees the result.
//
// Example:
//   AllReduce gradients(transport, members, bucket.data(), count, SumType::kFloat32);
//   more_backward();          // overlaps
//   gradients.finish();       // every member holds the same bits

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/comm/collective.h"
#include "tessera/comm/transport.h"

namespace tessera {

/// In-place sum over the members.
class AllReduce {
 public:
  /// Collective over `members`. `data` must stay valid until finish() returns, and so must
  /// `scratch`: reduce_scratch() elements, which a caller without any leaves to the call, unless
  /// they are to lie on a device.
  AllReduce(Transport& transport, const Members& members, void* data, int64_t count, SumType type,
            void* scratch = nullptr, DeviceQueue* queue = nullptr);

  /// Waits for a round of messages and posts the next, if there is one, so that work after it hides
  /// that. All members call it as often. Throws what the transport throws.
  void advance();
  /// Throws what the transport throws; once only.
  void finish();

 private:
  std::unique_ptr<Collective> started_;  // null: there is nothing to do
};

/// Every member's block (sizes may differ, may be zero) to every member, in their order.
class AllGather {
 public:
  /// Collective over `members`. `block_bytes[i]` is the size of member i's block; `gathered` has
  /// room for all of them, and this rank's own block already lies in its place there.
  AllGather(Transport& transport, const Members& members, const std::vector<int64_t>& block_bytes,
            void* gathered, DeviceQueue* queue = nullptr);
  void finish();

 private:
  std::unique_ptr<Collective> started_;
};

/// Collective over `members`. Returns when every member has entered. ceil(log2 g) rounds of one
/// empty message each, so that it does not show in the counts.
void barrier(Transport& transport, const Members& members);

/// Collective over `members`. `data` of member `root` (an index) to all others.
void broadcast(Transport& transport, const Members& members, int root, void* data, int64_t bytes,
               DeviceQueue* queue = nullptr);

}  // namespace tessera
