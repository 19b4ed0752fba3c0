#pragma once
// Batch x channels x space → batch x features, in row-major order: what stands before a linear
// layer. It gathers the space of an image in one place; where the space is cut, the lowering puts
// PartialLinear (partial.h) in the place of both, and no map moves.

#include "tessera/graph/graph.h"

namespace tessera {

/// Throws InvalidInput unless x is an image.
ValueId flatten(Graph& graph, ValueId x);

}  // namespace tessera
