#pragma once
// max(x, 0). Backward reads the output, whose sign says all, so that the input need not be kept.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

ValueId relu(Graph& graph, ValueId x, const std::string& name);

/// The lowering fuses a batch norm with the ReLU after it.
bool is_relu(const Op& op);

}  // namespace tessera
