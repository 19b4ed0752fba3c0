#pragma once
// What batch norm means where a batch is cut into micro-batches.

#include "tessera/graph/graph.h"

namespace tessera {

/// The graph in which every batch norm (and batch centring) normalises each of `parts` micro-batches
/// by its own statistics. Running statistics are those of the whole batch, updated once a step. It
/// is a different network: that is why users have to ask for it.
Graph with_micro_batch_norm(const Graph& graph, int64_t parts);

}  // namespace tessera
