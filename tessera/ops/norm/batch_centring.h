#pragma once
// Each channel without its mean over batch and space: what a batch norm is without the division.
// Statistics are those of the whole batch and image however they are cut, or of each micro-batch
// where that is asked for.
//
// Example:
//   ValueId centred = batch_centring(graph, code, "centred");

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

ValueId batch_centring(Graph& graph, ValueId x, const std::string& name);

}  // namespace tessera
