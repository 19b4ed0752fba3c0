#pragma once
// Convolutions without short cuts: every product of the sum is made, where 3x3 windows are
// otherwise computed by Winograd's tiles. Slower, and rounded a little less in float32.

#include "tessera/graph/graph.h"

namespace tessera {

Graph with_direct_convolutions(const Graph& graph);

}  // namespace tessera
