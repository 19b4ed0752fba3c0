#pragma once
// What some parts of the network hold of one micro-batch: the touches of their steps alone, from
// the first to the last. It knows nothing of other micro-batches or of the time that passes between
// the tasks; balance_flight.h adds those.

#include <utility>
#include <vector>

#include "tessera/planner/balance_steps.h"

namespace tessera {

/// Units [first, second), ascending and disjoint where there are several.
using Segments = std::vector<std::pair<int, int>>;

/// Something that another stage sends, and that a rank holds from then on.
struct Arrival {
  int from = kNoUnit;   // the unit that sends it; none: it is there from the start
  bool forward = true;  // in its forward, or in its backward
  int task = 0;         // of this stage, that uses it first
  double bytes = 0;
};

/// The tasks of k segments are k forwards, in order, and in reverse k backwards and k times weight
/// gradients: task 2k - 1 - i is the backward of task i.
struct StageProfile {
  double fixed_bytes = 0;            // parameters, and what all micro-batches share
  double reduction_bytes = 0;        // when all micro-batches are done, to sum the gradients
  std::vector<double> peak;          // per task: the most bytes of this micro-batch
  std::vector<double> level;         // per task: what is left of them when it has ended
  std::vector<double> sent;          // per task: what it has sent and leaves until the next begins
  std::vector<Arrival> arrivals;     // counted above from the start of the task that uses them
  std::vector<double> weight_bytes;  // per segment: of those, what its weight gradients wait for
};

/// Can be used again and again; it keeps its working memory.
class Profiler {
 public:
  explicit Profiler(const StepTable& table);

  /// The reference is good until the next call.
  const StageProfile& profile(const Segments& segments);

 private:
  struct Life {
    int first = 0;  // moments; one a step
    int last = 0;
    int unpacked = 0;  // the last moment at which its message, where it is one, has to be there
  };
  struct Change {
    double begins = 0;  // bytes of the lives that begin with a moment
    double ends = 0;
  };

  void enter(const Segments& segments);
  void pass_task(TaskKind kind, const std::pair<int, int>& segment);
  void touch(int buffer);
  void end_lives();
  void send(int buffer);
  void receive(int buffer);
  void live(int first, int last, double bytes);
  bool is_made_here(const StepBuffer& buffer) const;
  int task_at(int moment) const;
  void measure(size_t num_segments);

  const StepTable& table_;
  std::vector<bool> is_here_;     // per unit
  std::vector<int> fixed_seen_;   // per fixed thing: the last profile that has it
  std::vector<int> seen_;         // per buffer: likewise
  std::vector<Life> lives_;       // per buffer
  std::vector<int> touched_;      // buffers of this profile
  std::vector<int> task_begins_;  // moments, and the end of the last
  std::vector<Change> changes_;   // per moment
  int now_ = 0;
  int num_profiles_ = 0;
  StageProfile result_;
};

}  // namespace tessera
