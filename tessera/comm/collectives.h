#pragma once
// Collectives over a list of ranks, on point-to-point messages. Sums run in rank order, so every
// rank gets the same bits whatever the timing. All are split-phase: start posts what can be posted,
// finish waits and completes. base/collective_rounds.h says which messages
// one rank sends, which the simulator predicts and the recording transport counts.
//
// Messages of a pair match by order and a large all-reduce posts its second round in finish(), so
// all members start *and* finish their collectives in the same order. An object that is destroyed
// between start and finish (an exception unwinds) aborts the transport. Groups that break their
// contract are a bug of ours: InternalError.
//
// Example:
//   AllReduce gradients(transport, group, bucket.data(), count, SumType::kFloat32);
//   more_backward();          // overlaps
//   gradients.finish();       // every member holds the same bits

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/base/collective_rounds.h"
#include "tessera/comm/outstanding.h"
#include "tessera/comm/transport.h"

namespace tessera {

/// Ranks that take part, ascending and without repetition. The calling rank is a member.
using Group = std::vector<int>;

enum class SumType { kFloat32, kFloat64 };

/// In-place sum over the group: in one round where it is small, in two by chunks where it is large.
/// In both, element sums run over the ranks in ascending order. A group of one does nothing.
class AllReduce {
 public:
  /// Collective over `group`. `data` must stay valid until finish() returns.
  AllReduce(Transport& transport, const Group& group, void* data, int64_t count, SumType type);
  AllReduce(AllReduce&&) noexcept = default;
  AllReduce& operator=(AllReduce&& other) noexcept;

  /// Throws what the transport throws; once only.
  void finish();

 private:
  bool idle() const { return group_.size() == 1 || count_ == 0; }
  /// What this rank sums.
  Elements own_chunk() const;
  Batch first_round();
  Batch second_round();
  void sum_arrived();

  Transport* transport_;
  Group group_;
  int member_;  // this rank's index in the group
  char* data_;
  int64_t count_;
  SumType type_;
  std::unique_ptr<char[]> arrived_;  // the others' terms, in group order without this rank
  Outstanding round_;                // after arrived_: it must let go of it first
};

/// Every member's block (sizes may differ, may be zero) to every member, in group order. 1 round,
/// g-1 messages (a member with an empty block sends none).
class AllGather {
 public:
  /// Collective over `group`. `block_bytes[i]` is the size of member i's block; `gathered` has room
  /// for all of them, and this rank's own block already lies in its place there.
  AllGather(Transport& transport, const Group& group, const std::vector<int64_t>& block_bytes,
            void* gathered);
  void finish();

 private:
  Outstanding round_;  // not started when there is nothing to send or receive
};

/// Collective over `group`. Returns when every member has entered. ceil(log2 g) rounds of one empty
/// message each, so that it does not show in the counts.
void barrier(Transport& transport, const Group& group);

/// Collective over `group`. `data` of member `root` (an index in the group) to all others: g-1
/// messages of `bytes` from the root, 1 round.
void broadcast(Transport& transport, const Group& group, int root, void* data, int64_t bytes);

}  // namespace tessera
