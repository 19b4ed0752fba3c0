#pragma once
// Balances stages by the bytes of their largest rank: a model predicts every stage's bytes, exact
// searches over families of assignments propose, and lowering has the last word.

#include "tessera/planner/balance.h"
#include "tessera/planner/balance_lowering.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

/// `places` are where segments may begin.
StagedSegments balance_by_memory(const Graph& graph, const Plan& plan,
                                 const BalanceOptions& options, int num_segments,
                                 const std::vector<NodeId>& places);

}  // namespace tessera
