#pragma once
// Balances by what simply adds up along the network: layers, parameters, time.

#include "tessera/lower/cost_model.h"
#include "tessera/planner/balance.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

/// As many layers in each segment, the first ones taking one more where they do not divide evenly.
/// Nodes without weights go with the node before them. With fewer layers than segments every place
/// counts as one.
StagedSegments balance_by_layers(const Graph& graph, const Plan& plan, int num_segments,
                                 const std::vector<NodeId>& places);

/// The largest number of parameter elements in a segment is as small as it can be.
StagedSegments balance_by_parameters(const Graph& graph, const Plan& plan, int num_segments,
                                     const std::vector<NodeId>& places);

/// The longest time that a rank needs for the kernels of a segment is as short as it can be.
StagedSegments balance_by_time(const Graph& graph, const Plan& plan, int num_segments,
                               const std::vector<NodeId>& places, const CostModel& costs);

}  // namespace tessera
