#pragma once
// The network as it is applied rather than trained: batch norms use their running statistics,
// dropout is gone. Parameters, inputs and outputs keep their order.

#include "tessera/graph/graph.h"

namespace tessera {

Graph for_inference(const Graph& graph);

}  // namespace tessera
