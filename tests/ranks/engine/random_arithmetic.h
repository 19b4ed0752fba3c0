#pragma once
// Random uses of arithmetic with broadcasting, of spatial reductions and of adaptive pooling.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {

/// Adds one or a few nodes on some of `images` (batch x channels x space) and gives the last one's
/// output, again an image. Throws InvalidInput where what was drawn does not fit.
ValueId random_arithmetic(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                          Draw& draw);

}  // namespace tessera
