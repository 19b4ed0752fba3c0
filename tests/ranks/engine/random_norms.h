#pragma once
// Draws a normalisation for a random network: batch, group, instance and layer norm with all of
// their options.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {

/// `images` are values batch x channels x space; takes mostly the last one. Throws InvalidInput
/// where what was drawn does not fit.
ValueId random_norms(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                     Draw& draw);

}  // namespace tessera
