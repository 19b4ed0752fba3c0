#pragma once
// What a rank that had the whole network would do for one micro-batch, and which buffers it would
// touch when: read off the program of a single stage. What a part of the network holds follows from
// the touches of that part alone (balance_profile.h), so which buffer lives when stays the
// lowering's business. All that is assumed is how a cut changes it: what is sent has no margins,
// and gradients from other ranks are added where they are used.
//
// A *unit* is the nodes between two neighbouring places to cut.

#include <array>
#include <vector>

#include "tessera/lower/schedule.h"
#include "tessera/planner/balance.h"

namespace tessera {

inline constexpr int kNoUnit = -1;

/// One instruction, at its place among those of a unit.
struct Step {
  std::vector<int> buffers;
  int with = kNoUnit;     // only where a rank has this unit as well
  int without = kNoUnit;  // only where it does not have this one
};

struct StepBuffer {
  double bytes = 0;
  double message_bytes = 0;  // without the margins, which are not sent
  int made_by = kNoUnit;     // none: it is read from the data
  int made_for = kNoUnit;    // where that was done for another unit: which
  bool made_forward = true;  // rather than in backward
  int first_made = -1;       // the buffer of which this is a recomputation
  bool from_start = false;   // loaded before the first task
  std::vector<int> units;    // that touch it
};

/// Forward tasks go through their units in order, all others in reverse.
struct StepTable {
  int num_units = 0;
  std::vector<StepBuffer> buffers;
  std::array<std::vector<std::vector<Step>>, 3> steps;  // per kind of task and unit
  std::vector<double> fixed_bytes;              // parameters, and what all micro-batches share
  std::vector<double> reduction_bytes;          // ... and what is received to sum its gradient
  double largest_reduction = 0;                 // of one bucket; they come one after the other
  std::vector<std::vector<int>> fixed_of_unit;  // of those, what a unit uses

  const std::vector<Step>& of(TaskKind kind, int unit) const {
    return steps[static_cast<size_t>(kind)][unit];
  }
};

/// For ranks of a stage with this grid, and the plan's micro-batches and schedule.
StepTable read_steps(const Graph& graph, const Plan& plan, const BalanceOptions& options,
                     const std::vector<int64_t>& grid, const std::vector<NodeId>& places);

}  // namespace tessera
