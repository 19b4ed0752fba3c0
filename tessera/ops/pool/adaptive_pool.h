#pragma once
// Pooling to a size that the caller names, whatever the size of the image: pyramid pooling, heads
// that take images of any size. Output i of n reads the inputs [floor(i * size / n),
// ceil((i + 1) * size / n)) along each axis, so windows may overlap, and an output may be larger
// than the input.
//
// Example:
//   ValueId y = adaptive_average_pool(graph, x, "avgpool", {.size = {7}});    // [N, C, 7, 7]

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct AdaptivePoolOptions {
  std::vector<int64_t> size;  // one entry, or one per spatial axis; 0: that of the input
};

/// To size 1 along all axes it is a spatial_reduction(), whose parts are summed where they lie.
ValueId adaptive_average_pool(Graph& graph, ValueId x, const std::string& name,
                              const AdaptivePoolOptions& options);

/// The first of equal values gets the gradient.
ValueId adaptive_max_pool(Graph& graph, ValueId x, const std::string& name,
                          const AdaptivePoolOptions& options);

}  // namespace tessera
