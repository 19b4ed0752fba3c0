#pragma once
// Global average pooling: batch x channels x space → batch x channels, the mean over all of space.

#include "tessera/ops/pool/spatial_reduction.h"

namespace tessera {

/// Throws InvalidInput unless x is an image.
inline ValueId global_average_pool(Graph& graph, ValueId x) {
  return spatial_reduction(graph, x, "global_average_pool", {.keep_axes = false});
}

}  // namespace tessera
