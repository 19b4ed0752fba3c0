#pragma once
// The sum of two values of one shape: the joint of a residual block. Nothing is kept for backward.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// The result has the axes of `a`.
ValueId add(Graph& graph, ValueId a, ValueId b, const std::string& name);

}  // namespace tessera
