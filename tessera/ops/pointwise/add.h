#pragma once
// The sum of two values of one shape: where the branches of a residual block meet. Nothing is kept
// for backward.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// The result has the axes of `a`.
ValueId add(Graph& graph, ValueId a, ValueId b, const std::string& name);

}  // namespace tessera
