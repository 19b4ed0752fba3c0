#pragma once
// --freeze: weights that stay as they are, by patterns of their names.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// The graph with the parameters frozen that one of `patterns` names: shell patterns, with commas
/// between them, of whole names ("enc1.*,*.norm?.weight"). Throws InvalidInput for a pattern that
/// names no trainable parameter, and where none is left to train.
Graph freeze(const Graph& graph, const std::string& patterns);

}  // namespace tessera
