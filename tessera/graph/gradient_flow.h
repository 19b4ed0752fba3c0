#pragma once
// Which values a loss depends on by differentiable reading. The lowering and the oracle both go by
// it, so that they agree on which inputs of a graph have a gradient: targets have none.

#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// For every value: whether a gradient of a loss can reach it.
std::vector<bool> feeds_loss(const Graph& graph);

}  // namespace tessera
