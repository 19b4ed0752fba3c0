#pragma once
// The parts of a network that run in one go: nodes of one stage with no other stage in between. Any
// assignment of nodes to stages gives chunks that can run in their order.

#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

struct Chunk {
  int stage = 0;
  std::vector<NodeId> nodes;       // ascending
  std::vector<int> chunks_before;  // whose values it reads, ascending, all smaller than its own; an
                                   // input of the graph is its first reader's
};

/// The stage of every node of a graph, by the plan's names. A node that the lowering made has the
/// stage of the node that it was made from. Throws InvalidInput where the plan leaves one out.
std::vector<int> stages_of_nodes(const Graph& graph, const Plan& plan);

/// One chunk per stage where stages follow each other, more where they do not.
std::vector<Chunk> make_chunks(const Graph& graph, const std::vector<int>& stage_of_node);

}  // namespace tessera
