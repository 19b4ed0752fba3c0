#pragma once
// Puts one graph into another: a part of a network that was made by itself, such as an encoder.
//
// Example: one encoder for two images
//   append(graph, encoder, image, "shared.");
//   append(graph, encoder, image1, "shared.");   // the same weights once more

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Adds the nodes of `part`, which has one input, with `input` in its place, and gives the values
/// that stand for its outputs. Nodes and parameters get the prefix before their names; parameters
/// that are there by that name are shared. Types follow from `input`.
std::vector<ValueId> append(Graph& graph, const Graph& part, ValueId input,
                            const std::string& prefix);

}  // namespace tessera
