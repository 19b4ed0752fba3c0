#pragma once
// What a loss compares a prediction with: labels, one for each pixel, or real numbers, one for each
// element of the prediction. Both are inputs of the graph, cut as the prediction is, and get no
// gradient.
//
// Example:
//   ValueId labels = add_target(graph, logits, "target");
//   ValueId depths = add_real_target(graph, prediction, "depth");

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// A graph input for the labels of `logits`: its batch and spatial axes, without the classes.
ValueId add_target(Graph& graph, ValueId logits, const std::string& name);

/// A graph input for real targets of `prediction`, with the same axes.
ValueId add_real_target(Graph& graph, ValueId prediction, const std::string& name);

}  // namespace tessera
