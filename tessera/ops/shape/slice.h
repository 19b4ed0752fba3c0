#pragma once
// Every step-th element of a range along the channels or a spatial axis: crops, the split of
// channels into branches, and the rearrangement x[..., ::2] of Focus layers. Nothing is computed,
// so it is recomputed rather than kept.
//
// Example:
//   ValueId even_rows = slice(graph, x, "focus.even", {.axis = 2, .end = 64, .step = 2});

#include <cstdint>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// As x[begin:end:step] along `axis`, with 0 <= begin < end <= size and step >= 1. The batch is not
/// sliced.
struct SliceOptions {
  int axis = 1;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
};

ValueId slice(Graph& graph, ValueId x, const std::string& name, const SliceOptions& options);

}  // namespace tessera
