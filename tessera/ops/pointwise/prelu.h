#pragma once
// A leaky ReLU whose slope is learned: x where x > 0, else weight * x. One slope for all channels,
// or one for each.
//
// Example:
//   ValueId y = prelu(graph, x, "act1", {.num_parameters = channels});

#include <cstdint>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct PreluOptions {
  int64_t num_parameters = 1;  // 1, or the number of channels
  double initial = 0.25;
};

/// Takes batch x channels, with or without space. The parameter is name.weight.
ValueId prelu(Graph& graph, ValueId x, const std::string& name, const PreluOptions& options = {});

}  // namespace tessera
