// Which nodes and targets a written loss puts on the outputs of a graph, and the noise that stands
// for these targets.

#include "tessera/loss/add_losses.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/data/noise.h"
#include "tessera/graph/gradient_flow.h"
#include "tessera/graph/reference.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pool/pooling.h"

namespace tessera::add_losses_test {
namespace {

using Names = std::vector<std::string>;

/// An output for each entry: so many channels, at full size or after so many halvings.
struct Head {
  int64_t channels = 3;
  int halvings = 0;
};

Graph with_heads(const std::vector<Head>& heads) {
  Graph graph;
  const ValueId image = graph.add_input("image", ValueType::image({2, 1, 12, 8}));
  for (const Head& head : heads) {
    ValueId x = image;
    for (int i = 0; i < head.halvings; ++i) x = max_pool(graph, x, "pool", {.kernel = {2}});
    const std::string name = fmt::format("head{}", graph.outputs().size());
    graph.mark_output(convolution(graph, x, name, {head.channels, {1}}));
  }
  return graph;
}

Graph with_losses(const std::vector<Head>& heads, const LossOptions& options) {
  Graph graph = with_heads(heads);
  add_losses(graph, options);
  return graph;
}

Names losses(const Graph& graph) {
  Names names;
  for (const Node& node : graph.nodes())
    if (node.op->is_loss()) names.push_back(node.name + " " + node.op->kind());
  return names;
}

Names inputs(const Graph& graph) {
  Names names;
  for (ValueId input : graph.inputs())
    names.push_back(graph.value(input).name + " " + to_string(graph.type(input)));
  return names;
}

double total(const Graph& graph) {
  std::vector<at::Tensor> tensors, parameters;
  for (ValueId input : graph.inputs()) {
    const ValueType& type = graph.type(input);
    const at::ScalarType element = type.element == Element::kIndex ? at::kLong : at::kDouble;
    tensors.push_back(at::empty(type.shape(), element));
    load_noise(graph, input, 1, 0, Box::whole(type.shape()), tensors.back());
  }
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, 1));
  return run_reference(graph, tensors, parameters, 1, 0).loss;
}

TEST(AddLosses, OneOutputAndOneTerm) {
  const Graph graph = with_losses({{}}, {});
  EXPECT_EQ(losses(graph), (Names{"loss cross_entropy"}));
  EXPECT_EQ(inputs(graph), (Names{"image 2x1x12x8", "target 2x12x8"}));
}

TEST(AddLosses, TermsShareTheTarget) {
  const Graph graph = with_losses({{}}, {.spec = "bce+0.5*dice+dice:average=batch"});
  EXPECT_EQ(losses(graph),
            (Names{"loss binary_cross_entropy", "loss_dice dice", "loss_dice_2 dice"}));
  EXPECT_EQ(inputs(graph).size(), 2u);
  EXPECT_EQ(graph.node(2).op->settings(), "softmax, per sample, weight 0.5");
}

TEST(AddLosses, DiceOfOneChannelOrRealTargetsIsSigmoid) {
  EXPECT_EQ(with_losses({{.channels = 1}}, {.spec = "dice"}).node(1).op->settings(),
            "sigmoid, per sample");
  EXPECT_EQ(with_losses({{}}, {.spec = "dice:target=real"}).node(1).op->settings(),
            "sigmoid, per sample");
  EXPECT_EQ(with_losses({{}}, {.spec = "dice:activation=sigmoid"}).node(1).op->settings(),
            "sigmoid, per sample");
}

TEST(AddLosses, OutputsShareLabelsOrResizeThem) {
  const Graph graph =
      with_losses({{}, {}, {.halvings = 1}, {.halvings = 1}, {.halvings = 2}}, {.spec = "bce"});
  EXPECT_EQ(inputs(graph), (Names{"image 2x1x12x8", "target 2x12x8"}));
  EXPECT_EQ(losses(graph), (Names{"loss binary_cross_entropy", "loss_1 binary_cross_entropy",
                                  "loss_2 binary_cross_entropy", "loss_3 binary_cross_entropy",
                                  "loss_4 binary_cross_entropy"}));
  Names resized;
  for (const Node& node : graph.nodes())
    if (node.op->kind() == "resize_labels")
      resized.push_back(node.name + " " + to_string(node.types.output));
  EXPECT_EQ(resized, (Names{"target_2 2x6x4", "target_4 2x3x2"}));
}

TEST(AddLosses, RealTargetsOfAnotherShapeAreInputs) {
  const Graph graph = with_losses({{}, {.channels = 2}, {}, {.halvings = 1}}, {.spec = "mse+dice"});
  EXPECT_EQ(inputs(graph),
            (Names{"image 2x1x12x8", "target 2x3x12x8", "target_1 2x2x12x8", "target_3 2x3x6x4"}));
  const std::vector<bool> feeds = feeds_loss(graph);
  EXPECT_TRUE(feeds[graph.inputs()[0]]);
  for (size_t i = 1; i < graph.inputs().size(); ++i) EXPECT_FALSE(feeds[graph.inputs()[i]]);
}

TEST(AddLosses, WeightsMultiply) {
  const std::vector<Head> heads{{}, {.halvings = 1}};
  const double first = total(with_losses(heads, {.output_weights = {1, 0}}));
  const double second = total(with_losses(heads, {.output_weights = {0, 1}}));
  const double both = total(with_losses(heads, {"0.5*cross_entropy", {1, 0.4}}));
  EXPECT_NEAR(both, 0.5 * (first + 0.4 * second), 1e-12);
  EXPECT_NEAR(total(with_losses(heads, {})), first + second, 1e-12);
}

TEST(AddLosses, RefusesWhatDoesNotFit) {
  EXPECT_THROW(with_losses({}, {}), InvalidInput);
  EXPECT_THROW(with_losses({{}}, {.output_weights = {1, 2}}), InvalidInput);
  EXPECT_THROW(with_losses({{}}, {.spec = "cross_entropy+mse"}), InvalidInput);
  EXPECT_THROW(with_losses({{}}, {.spec = "cross_entropy+dice:target=real"}), InvalidInput);
  EXPECT_THROW(with_losses({{}}, {.spec = "cross_entropy:class_weights=1/2"}), InvalidInput);
  EXPECT_THROW(with_losses({{}}, {.spec = "nothing"}), InvalidInput);
}

/// Smallest and largest number of a target's noise.
std::pair<double, double> range_of_noise(const Graph& graph) {
  const ValueId input = graph.inputs()[1];
  const Shape shape = graph.type(input).shape();
  const at::Tensor noise = at::empty(shape, at::kDouble);
  load_noise(graph, input, 1, 0, Box::whole(shape), noise);
  return {noise.min().item<double>(), noise.max().item<double>()};
}

TEST(AddLosses, NoiseIsLegalForTheTargets) {
  const auto range = [](const std::vector<Head>& heads, const std::string& spec) {
    return range_of_noise(with_losses(heads, {.spec = spec}));
  };
  EXPECT_EQ(range({{}}, "cross_entropy"), std::pair(0.0, 2.0));
  EXPECT_EQ(range({{.channels = 1}}, "dice"), std::pair(0.0, 1.0));
  EXPECT_EQ(range({{.channels = 1}}, "cross_entropy"), std::pair(0.0, 0.0));
  EXPECT_EQ(range({{}, {.channels = 2, .halvings = 1}}, "bce"), std::pair(0.0, 1.0));
  const auto [low, high] = range({{}}, "bce:target=real");
  EXPECT_TRUE(low >= 0 && low < 0.1 && high > 0.9 && high < 1) << low << " " << high;
}

TEST(AddLosses, CountedWeightsAreThoseThatAreWritten) {
  const std::string automatic = "cross_entropy:class_weights=auto+dice";
  const double counted =
      total(with_losses({{}}, {.spec = automatic, .class_weights = {0.5, 2, 1.25}}));
  EXPECT_EQ(counted,
            total(with_losses({{}}, {.spec = "cross_entropy:class_weights=0.5/2/1.25+dice"})));
  const double unweighted = total(with_losses({{}}, {.spec = "cross_entropy+dice"}));
  EXPECT_EQ(total(with_losses({{}}, {.spec = automatic})), unweighted);
  EXPECT_NE(counted, unweighted);
}

}  // namespace
}  // namespace tessera::add_losses_test
