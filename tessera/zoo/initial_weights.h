#pragma once
// The initial values of torchvision's models, where they are not those of PyTorch's layers, which
// the operators' builders give. A model's file calls these when its graph is complete.
//
// Example:
//   start_convolutions(graph, kaiming_normal(Fan::kOut));
//   start_linears(graph, normal(0.01));
//   zero_biases_of_linears(graph);

#include <functional>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// How a layer's weight starts.
using WeightStart = std::function<Initial(const Parameter& weight)>;

enum class Fan {
  kIn,   // products that make one output
  kOut,  // outputs that one input goes into; PyTorch counts those of all groups
};

WeightStart normal(double deviation);
/// Normal with variance 2 / fan (He et al., "Delving Deep into Rectifiers", 2015), as
/// torch.nn.init.kaiming_normal_ for ReLU.
WeightStart kaiming_normal(Fan fan);

/// The weights of all convolutions, or of all linear layers.
void start_convolutions(Graph& graph, const WeightStart& start);
void start_linears(Graph& graph, const WeightStart& start);
/// Their biases, where they have one.
void zero_biases_of_convolutions(Graph& graph);
void zero_biases_of_linears(Graph& graph);

/// The weight of one layer.
void start_layer(Graph& graph, const std::string& node, const WeightStart& start);

/// torchvision's VGG and MobileNet: fan_out for convolutions, a deviation of 0.01 for linear
/// layers, all biases 0.
void start_as_vgg(Graph& graph);

}  // namespace tessera
