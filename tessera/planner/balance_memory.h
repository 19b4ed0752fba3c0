#pragma once
// Balances stages by the bytes of their largest rank: a model predicts every stage's bytes, exact
// searches over families of assignments propose, and the simulator has the last word.

#include "tessera/planner/balance.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

/// Per stage: the peak bytes of its largest rank as the simulator counts them, with parameters,
/// gradients and the optimiser's copies.
std::vector<double> simulated_stage_bytes(const Graph& graph, const Plan& plan,
                                          const StagedSegments& assignment,
                                          const BalanceOptions& options);

/// `places` are where segments may begin.
StagedSegments balance_by_memory(const Graph& graph, const Plan& plan,
                                 const BalanceOptions& options, int num_segments,
                                 const std::vector<NodeId>& places);

}  // namespace tessera
