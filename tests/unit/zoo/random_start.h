#pragma once
// Inputs and parameters to run a model with, the same in every run.

#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

inline std::vector<at::Tensor> random_inputs(const Graph& graph) {
  const Value& logits = graph.value(graph.outputs()[0]);
  at::manual_seed(1);
  std::vector<at::Tensor> inputs;
  for (ValueId input : graph.inputs())
    inputs.push_back(
        graph.type(input).element == Element::kReal
            ? at::randn(graph.type(input).shape(), at::kDouble)
            : at::randint(logits.type.channels(), graph.type(input).shape(), at::kLong));
  return inputs;
}

inline std::vector<at::Tensor> initial_parameters(const Graph& graph) {
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, 1));
  return parameters;
}

}  // namespace tessera
