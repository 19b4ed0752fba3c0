#pragma once
// Random losses for the random networks.

#include <string>

#include "tessera/graph/graph.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {

/// Puts a random loss on `x`, an image: through a convolution called `name` to the channels that
/// the loss wants, whose output is an output of the graph, against targets "<name>_target".
void random_losses(Graph& graph, ValueId x, const std::string& name, Draw& draw);

}  // namespace tessera
