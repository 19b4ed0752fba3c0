#pragma once
// What the tasks of a network cost by a cost model: of a node, and of a chunk on the rank that has
// most to do.

#include <vector>

#include "tessera/lower/cost_model.h"
#include "tessera/lower/edges.h"
#include "tessera/lower/keep.h"

namespace tessera {

/// What one task of each kind costs, as Pipeline has them.
struct TaskCosts {
  double forward = 0;
  double backward = 0;  // input gradients, and what is recomputed for them
  double weight = 0;    // weight gradients
  TaskCosts& operator+=(const TaskCosts& other);
};

/// What the kernels cost that a node runs for a box of its output.
TaskCosts kernel_costs(const CostModel& model, const Graph& graph, NodeId node,
                       const BackwardValues& backward, const Box& out);

/// What the tasks of each chunk cost for the first micro-batch.
std::vector<TaskCosts> chunk_costs(const CostModel& model, const PlacedGraph& placed,
                                   const BackwardValues& backward);

}  // namespace tessera
