#pragma once
// Sums over ranks, round by round, between the kernels of backward. A reduction takes several
// rounds of messages (base/collective_rounds.h), each of which needs what the one before brought:
//
//   StartReduce    kernel   AdvanceReduce    kernel   AdvanceReduce   ...   FinishReduce
//   posts round 1           waits for it,             waits for it,         waits for the last
//                           posts round 2             posts round 3
//
// How many kernels a round has to hide behind follows from its size: what is left of backward is
// shared out among what is left to send, so that all of it hides if anything can, and no rate has
// to be known. Reductions over the same ranks come one after the other: what they receive takes the
// memory of one of them. Where the members never run a kernel together (parameters that two stages
// use), all of them wait for the end of backward: who is through first has nothing else to do, and
// who is not must not wait for it in the middle. All members post and wait in the same places
// of the walk over all tasks, so nobody waits in a cycle.

#include <deque>
#include <vector>

#include "tessera/lower/backward_work.h"
#include "tessera/lower/program_writer.h"

namespace tessera {

class ReductionWriter {
 public:
  explicit ReductionWriter(ProgramWriter* writer) : writer_(*writer), work_(writer->step) {}

  /// A buffer of so many elements will be summed over the members, of which this rank is one.
  void expect(const Members& members, int64_t elements);
  /// Sums a buffer over the members as soon as those before it are done.
  void start(int channel, BufferId buffer, const Members& members);
  /// Kernels of a node's backward have run on these ranks, this one or others.
  void input_gradient_ran(NodeId node, const Members& ranks);
  void weight_gradient_ran(NodeId node, const Members& ranks);
  void finish_all();

 private:
  struct Reduction {
    int channel = -1;
    BufferId buffer = -1;
    BufferId received = -1;
    std::vector<double> rounds = {};  // what each sends
    int posted = 0;
  };
  /// Reductions over the same ranks.
  struct Lane {
    Members members;
    bool meets_kernels = false;  // that all members run: it is worth waiting for them
    int64_t largest = 0;         // elements of the largest one
    double to_send = 0;          // in rounds that nobody has waited for
    double work = 0;             // since the last rounds were posted
    double work_to_hide = 0;     // what they shall have to hide behind
    std::vector<Reduction> current;
    std::deque<Reduction> waiting;
  };

  Lane& lane_of(const Members& members);
  void start_waiting(Lane* lane);
  void start_first(Lane* lane);
  void advance(const Members& ranks, double work);
  void rounds_posted(Lane* lane);
  void step(Lane* lane);
  void finish(Lane* lane);

  ProgramWriter& writer_;
  BackwardWork work_;
  std::vector<Lane> lanes_;  // in the order of their first reduction
};

}  // namespace tessera
