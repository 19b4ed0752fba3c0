#pragma once
// When each rank does what in one step, without running it: all programs are walked together in
// virtual time. A rank executes its instructions in order; a Start posts messages and goes on, a
// Finish waits until they have moved, which a peer that is late delays. Nothing contends: messages
// do not slow each other down. So the result does not depend on the order of the walk.
//
// Example: the idle time of a pipeline, and where it lies:
//   const Timeline timeline = make_timeline(lowered.programs, lowered.graph);
//   timeline.bubble_fraction();
//   draw_timeline(timeline);

#include <vector>

#include "tessera/lower/cost_model.h"
#include "tessera/lower/program.h"

namespace tessera {

struct TimelineSpan {
  int rank = 0;
  Enter enter;  // the task
  double begin = 0;
  double end = 0;
};

struct RankTime {
  double busy = 0;
  double idle = 0;  // the rest of the step
};

struct Timeline {
  TimeUnit unit = TimeUnit::kTasks;
  std::vector<TimelineSpan> tasks;  // from their Enter to the next; rank by rank, in order
  std::vector<TimelineSpan> waits;  // inside tasks: idle time; rank by rank, in order
  std::vector<RankTime> ranks;
  double step_time = 0;

  /// The part of (ranks x step time) that is idle.
  double bubble_fraction() const;
};

/// Spans that last no time are left out. `graph` is the one that the programs run. Throws
/// InternalError where they wait for each other for ever.
Timeline make_timeline(const std::vector<Program>& programs, const Graph& graph,
                       const CostModel& costs = UnitCosts());

}  // namespace tessera
