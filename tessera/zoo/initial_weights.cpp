#include "tessera/zoo/initial_weights.h"

#include <cmath>

#include "tessera/base/error.h"

namespace tessera {
namespace {

constexpr const char *kConvolution = "convolution", *kLinear = "linear";
enum Operand { kWeight, kBias };

void start_all(Graph& graph, const std::string& kind, Operand operand, const WeightStart& start) {
  for (const Node& node : graph.nodes())
    if (node.op->kind() == kind && operand < static_cast<int>(node.parameters.size()))
      graph.set_initial(node.parameters[operand],
                        start(graph.parameters()[node.parameters[operand]]));
}

Initial zero(const Parameter&) { return {Initial::Kind::kConstant, 0}; }

}  // namespace

WeightStart normal(double deviation) {
  return [=](const Parameter&) { return Initial{Initial::Kind::kNormal, deviation}; };
}

WeightStart kaiming_normal(Fan fan) {
  return [=](const Parameter& weight) {
    double products = static_cast<double>(weight.shape[fan == Fan::kIn ? 1 : 0]);
    for (size_t axis = 2; axis < weight.shape.size(); ++axis)
      products *= static_cast<double>(weight.shape[axis]);
    return Initial{Initial::Kind::kNormal, std::sqrt(2 / products)};
  };
}

void start_convolutions(Graph& graph, const WeightStart& start) {
  start_all(graph, kConvolution, kWeight, start);
}

void start_linears(Graph& graph, const WeightStart& start) {
  start_all(graph, kLinear, kWeight, start);
}

void zero_biases_of_convolutions(Graph& graph) { start_all(graph, kConvolution, kBias, zero); }
void zero_biases_of_linears(Graph& graph) { start_all(graph, kLinear, kBias, zero); }

void start_layer(Graph& graph, const std::string& node, const WeightStart& start) {
  for (const Node& each : graph.nodes())
    if (each.name == node) {
      const ParameterId weight = each.parameters.at(kWeight);
      return graph.set_initial(weight, start(graph.parameters()[weight]));
    }
  TESSERA_CHECK(false, "no layer {}", node);
}

void start_as_vgg(Graph& graph) {
  start_convolutions(graph, kaiming_normal(Fan::kOut));
  zero_biases_of_convolutions(graph);
  start_linears(graph, normal(0.01));
  zero_biases_of_linears(graph);
}

}  // namespace tessera
