#pragma once
// Dropout: an element is zeroed with the given probability, the others are scaled by 1 / (1 - p).
// The mask is a function of (seed, node name, step, global index), so that it is the same on every
// placement, and it is drawn again in backward instead of being kept. Networks for inference are
// built without it.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct DropoutOptions {
  double probability = 0.5;  // of zeroing, in [0, 1]
};

ValueId dropout(Graph& graph, ValueId x, const std::string& name, const DropoutOptions& options);

}  // namespace tessera
