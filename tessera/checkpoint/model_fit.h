#pragma once
// Does a set of named tensors fit a model? The answer is a list of differences that a person can
// act on, used by weights files and checkpoints alike.
//
// Example:
//   [weights] w.safetensors does not fit the model (2 differences):
//     conv1.weight is 16x3x3x3 there, the model has 8x3x3x3
//     conv9.bias is missing

#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// What differs, a line each: parameters that are missing or have another shape, and tensors that
/// the graph does not have.
std::vector<std::string> model_differences(const Graph& graph,
                                           const std::map<std::string, Shape>& tensors);
/// The first of them as a list, a new line before each.
std::string listed(const std::vector<std::string>& differences);

/// Throws InvalidInput beginning with `place` unless the names are those of the graph's parameters
/// and the shapes agree. The message lists the first differences.
void check_model_fit(const std::string& place, const Graph& graph,
                     const std::map<std::string, Shape>& tensors);

}  // namespace tessera
