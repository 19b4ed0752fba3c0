#pragma once
// The oracle: runs the graph on whole tensors with LibTorch's autograd. Tests and `tessera verify`
// compare every placement with it.

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct ReferenceResult {
  double loss = 0;
  std::vector<double> measured;             // the step's numbers after the loss
  std::vector<at::Tensor> outputs;          // as Graph::outputs()
  std::vector<at::Tensor> input_gradients;  // as Graph::inputs(); undefined for targets
  std::vector<at::Tensor> gradients;        // as Graph::parameters(); undefined for buffers
};

/// Called with each value that a node has computed; it may write to the values' memory, and
/// autograd goes on with what it has written.
using WriteValue = std::function<void(const Node& node, at::Tensor value)>;

/// One forward and backward. `parameters` as Graph::parameters(); buffers among them are updated in
/// place; the others and the inputs are read where they lie. The loss is the sum of all loss nodes;
/// without one there are no gradients.
ReferenceResult run_reference(const Graph& graph, const std::vector<at::Tensor>& inputs,
                              std::vector<at::Tensor>& parameters, uint64_t seed, int64_t step,
                              const WriteValue& write_value = {});

}  // namespace tessera
