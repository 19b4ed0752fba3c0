#pragma once
// Pointwise functions, PReLU, softmax and reductions over channels, for random networks.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {

/// Adds one of them to the graph, on one of `images`, and returns its output. Functions that are
/// not defined, or grow fast, on all numbers get one or two nodes before them that bound their
/// input: values stay finite, and so moderate that gradients can be compared. Throws InvalidInput
/// where what was drawn does not fit.
ValueId random_pointwise(Graph& graph, const std::vector<ValueId>& images, const std::string& name,
                         Draw& draw);

}  // namespace tessera
