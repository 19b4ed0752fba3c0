#pragma once
// Sums over ranks, round by round, between the kernels of backward. A reduction takes several
// rounds of messages (base/collective_rounds.h), each of which needs what the one before brought:
//
//   StartReduce    kernel   AdvanceReduce    kernel   AdvanceReduce   ...   FinishReduce
//   posts round 1           waits for it,             waits for it,         waits for the last
//                           posts round 2             posts round 3
//
// so every round has a kernel to hide behind. Reductions over the same ranks come one after the
// other: what they receive takes the memory of one of them. Where the members never run a kernel
// together (parameters that two stages use), the next one's start finishes the one before. All
// members post and wait in the same
// places of the walk over all tasks, so nobody waits in a cycle.

#include <deque>
#include <optional>
#include <vector>

#include "tessera/lower/program_writer.h"

namespace tessera {

class ReductionWriter {
 public:
  explicit ReductionWriter(ProgramWriter* writer) : writer_(*writer) {}

  /// Sums a buffer over the members, of which this rank is one, as soon as those before it are
  /// done.
  void start(int channel, BufferId buffer, const Members& members);
  /// A kernel has run on these ranks, this one or others: reductions among them make a step.
  void advance(const Members& ranks);
  void finish_all();

 private:
  struct Reduction {
    int channel = -1;
    BufferId buffer = -1;
    BufferId received = -1;
    int rounds = 0;
    int posted = 0;
  };
  /// Reductions over the same ranks.
  struct Lane {
    Members members;
    std::optional<Reduction> current;
    std::deque<Reduction> waiting;
    bool meets_kernels = false;  // that all members run: it is worth waiting for them
  };

  Lane& lane_of(const Members& members);
  void start_next(Lane* lane);
  void step(Lane* lane);
  void finish(Lane* lane);

  ProgramWriter& writer_;
  std::vector<Lane> lanes_;  // in the order of their first reduction
};

}  // namespace tessera
