#pragma once
// The one place where the balance lowers: the true bytes of stages, and the program that they are
// read off.

#include <vector>

#include "tessera/lower/program.h"
#include "tessera/planner/balance.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

/// What the ranks with the most bytes do, one for each stage.
struct LoweredStages {
  Graph graph;                    // as the programs name its nodes
  std::vector<Program> programs;  // per stage
  std::vector<double> bytes;      // ... with parameters, gradients and the optimiser's copies
};

LoweredStages lower_stages(const Graph& graph, const Plan& plan, const BalanceOptions& options);

/// The bytes of an assignment; the plan's own `stage_of` is not looked at.
std::vector<double> simulated_stage_bytes(const Graph& graph, const Plan& plan,
                                          const StagedSegments& assignment,
                                          const BalanceOptions& options);

}  // namespace tessera
