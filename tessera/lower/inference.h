#pragma once
// The network as it is applied rather than trained: batch norms use their running statistics,
// dropout is gone. Parameters, inputs and outputs keep their order.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

Graph for_inference(const Graph& graph);

/// The norms that use their running statistics in training, too: those of a model that was saved in
/// eval mode. Training leaves their statistics as they are.
std::vector<std::string> norms_in_eval_mode(const Graph& graph);

}  // namespace tessera
