#pragma once
// Global average pooling: batch x channels x space → batch x channels. It exists in graphs and in
// the reference path only. Its needed box is the whole space, so the lowering rewrites it before it
// places anything: to PartialSum on each piece and SumParts (partial.h), which move one number per
// channel and piece.

#include "tessera/graph/graph.h"

namespace tessera {

/// Throws InvalidInput unless x is an image.
ValueId global_average_pool(Graph& graph, ValueId x);

}  // namespace tessera
