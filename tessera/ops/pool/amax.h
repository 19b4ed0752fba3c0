#pragma once
// The largest value along channels, space, or both, with PyTorch's rule for amax: equal maxima
// share the gradient evenly (max pooling and max over channels give it to one of them).
//
// Along space, the owner of an output reads the whole of it: one map travels to one rank.
//
// Example:
//   ValueId y = amax(graph, x, "peak", {.axes = {2, 3}});   // [N, C, 1, 1]

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct AmaxOptions {
  std::vector<int> axes;  // of the value, from 1; they stay, with size 1
};

ValueId amax(Graph& graph, ValueId x, const std::string& name, const AmaxOptions& options);

}  // namespace tessera
