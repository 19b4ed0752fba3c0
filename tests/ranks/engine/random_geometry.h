#pragma once
// Random uses of the operators that move pixels: interpolation, padding, slices, concatenation,
// shuffles, axes of size 1, and losses on resized labels.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {

/// Adds one or a few nodes on some of `images` (batch x channels x space) and gives the last one's
/// output, again an image. Throws InvalidInput where what was drawn does not fit.
ValueId random_geometry(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                        Draw& draw);

}  // namespace tessera
