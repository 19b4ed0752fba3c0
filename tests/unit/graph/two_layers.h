#pragma once
// The smallest network whose gradients say something: two layers with a batch norm between them,
// and what it takes to run it, the same numbers each time.

#include <vector>

#include "tessera/data/noise.h"
#include "tessera/graph/graph.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"

namespace tessera {

/// conv1, norm1, relu1, conv2, whose output is the graph's, and a loss against real targets.
inline Graph two_layers() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({2, 2, 6, 5}));
  x = convolution(graph, x, "conv1", {.out_channels = 3, .kernel = {3}, .padding = {1}});
  x = relu(graph, batch_norm(graph, x, "norm1"), "relu1");
  x = convolution(graph, x, "conv2", {.out_channels = 2, .kernel = {3}, .padding = {1}});
  graph.mark_output(x);
  mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
  return graph;
}

/// Whole tensors for all inputs.
inline std::vector<at::Tensor> noise_inputs(const Graph& graph, int64_t step = 0) {
  std::vector<at::Tensor> inputs;
  for (ValueId input : graph.inputs()) {
    const Shape shape = graph.type(input).shape();
    inputs.push_back(
        at::empty(shape, graph.type(input).element == Element::kIndex ? at::kLong : at::kDouble));
    load_noise(graph, input, /*seed=*/1, step, Box::whole(shape), inputs.back());
  }
  return inputs;
}

inline std::vector<at::Tensor> starting_parameters(const Graph& graph) {
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, /*seed=*/1));
  return parameters;
}

}  // namespace tessera
