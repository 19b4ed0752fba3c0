#pragma once
// What batch norm means where a batch is cut into micro-batches.

#include "tessera/graph/graph.h"

namespace tessera {

/// The graph in which every batch norm takes the statistics of each of `parts` micro-batches for
/// itself. Running statistics are those of the whole batch, updated once a step. Not the same
/// network as without: that is why users have to ask for it.
Graph with_micro_batch_norm(const Graph& graph, int64_t parts);

}  // namespace tessera
