#pragma once
// A linear layer on channels: y = x Wᵀ + b for batch x features, and for each pixel of an image
// (the channels-last linear layers of ConvNeXt), where it is a 1x1 convolution; and the parameters
// that every layer of products starts with.
//
// Example:
//   ValueId logits = linear(graph, features, "fc", {.out_features = 10});

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct LinearOptions {
  int64_t out_features = 0;
  bool bias = true;
};

/// Parameters: name.weight [out, in] and name.bias [out], as torch.nn.Linear. Throws InvalidInput
/// unless x has batch and channels first.
ValueId linear(Graph& graph, ValueId x, const std::string& name, const LinearOptions& options);

/// Adds name.weight, and name.bias unless `bias_size` is 0, with the initial values of PyTorch's
/// linear and convolution layers: both uniform with bound 1 / sqrt(fan_in), where the fan-in is the
/// volume of the weight's axes but the first (so PyTorch counts it for transposed convolutions,
/// too).
std::vector<ParameterId> add_weight_and_bias(Graph& graph, const std::string& name,
                                             const Shape& weight_shape, int64_t bias_size);

}  // namespace tessera
