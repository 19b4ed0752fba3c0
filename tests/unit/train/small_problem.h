#pragma once
// Parameters with gradients that depend on them and on the step: enough for an optimiser to go
// somewhere, the same each time.

#include <cmath>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Two trainable parameters with a buffer between them, so that identifiers are not simply counted.
inline Graph small_graph() {
  Graph graph;
  graph.add_parameter({.name = "conv1.weight", .shape = {4, 3, 3}, .initial = {}});
  graph.add_parameter(
      {.name = "norm1.running_mean", .shape = {4}, .role = ParameterRole::kBuffer, .initial = {}});
  graph.add_parameter({.name = "conv1.bias", .shape = {4}, .initial = {}});
  return graph;
}

inline at::Tensor wave(const Shape& shape, double phase) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  double* elements = tensor.data_ptr<double>();
  for (int64_t i = 0; i < tensor.numel(); ++i)
    elements[i] = std::sin(phase + 0.7 * static_cast<double>(i));
  return tensor;
}

inline std::vector<at::Tensor> small_parameters(const Graph& graph, at::ScalarType real) {
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(wave(parameter.shape, static_cast<double>(parameters.size())).to(real));
  return parameters;
}

/// Undefined for buffers.
inline std::vector<at::Tensor> small_gradients(const Graph& graph,
                                               const std::vector<at::Tensor>& parameters,
                                               int step) {
  std::vector<at::Tensor> gradients(parameters.size());
  for (size_t id = 0; id < parameters.size(); ++id)
    if (graph.parameters()[id].role == ParameterRole::kTrainable)
      gradients[id] = (parameters[id] * 0.3 + wave(graph.parameters()[id].shape, 10.0 * step + 1))
                          .to(parameters[id].scalar_type());
  return gradients;
}

}  // namespace tessera
