// Names and their numbers, who reads what, parameters that several nodes share, and what a graph
// refuses.

#include "tessera/graph/graph.h"

#include <gtest/gtest.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/shape/concat.h"
#include "tests/unit/refusal.h"

namespace tessera::graph_test {
namespace {

using enum ParameterRole;
using Uses = std::vector<Use>;

ValueId add_image(Graph& graph, const Shape& shape = {1, 2, 4, 4}) {
  return graph.add_input("image", ValueType::image(shape));
}

ParameterId add(Graph& graph, const std::string& name, const Shape& shape, ParameterRole role) {
  return graph.add_parameter({.name = name, .shape = shape, .role = role, .initial = {}});
}

TEST(Graph, NumbersNamesThatAreInUse) {
  Graph graph;
  const ValueId x = add_image(graph);
  for (const char* name : {"act", "act", "act_3", "act", "act"}) relu(graph, x, name);
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"act", "act_2", "act_3", "act_4", "act_5"}));
}

TEST(Graph, AValueKnowsItsProducerAndItsReaders) {
  Graph graph;
  const ValueId x = add_image(graph);
  const ValueId y = relu(graph, x, "act");
  const ValueId sum = add(graph, x, y, "sum");
  const ValueId twice = add(graph, sum, sum, "twice");
  EXPECT_EQ(graph.value(x).uses, (Uses{{0, 0}, {1, 0}}));
  EXPECT_EQ(graph.value(y).uses, (Uses{{1, 1}}));
  EXPECT_EQ(graph.value(sum).uses, (Uses{{2, 0}, {2, 1}}));
  EXPECT_EQ(graph.value(twice).uses, Uses());
  EXPECT_EQ(graph.value(x).producer, -1);
  EXPECT_EQ(graph.value(sum).producer, 1);
  EXPECT_EQ(graph.value(sum).name, "sum");
  EXPECT_EQ(graph.node(1).inputs, (std::vector<ValueId>{x, y}));
  EXPECT_EQ(graph.node(1).output, sum);
}

TEST(Graph, InputsAndOutputsKeepTheirOrder) {
  Graph graph;
  const ValueId a = add_image(graph);
  const ValueId y = relu(graph, a, "act");
  const ValueId b = graph.add_input("mask", graph.type(a));
  graph.mark_output(y);
  graph.mark_output(b);
  graph.mark_output(a);
  EXPECT_EQ(graph.inputs(), (std::vector<ValueId>{a, b}));
  EXPECT_EQ(graph.outputs(), (std::vector<ValueId>{y, b, a}));
}

TEST(Graph, LayersOfOneNameShareTheirParameters) {
  Graph graph;
  ValueId x = add_image(graph);
  x = convolution(graph, x, "conv", {.out_channels = 2, .kernel = {3}, .padding = {1}});
  convolution(graph, x, "conv", {.out_channels = 2, .kernel = {3}, .padding = {1}});
  EXPECT_EQ(graph.parameters().size(), 2u);
  EXPECT_EQ(graph.node(1).name, "conv_2");
  EXPECT_EQ(graph.node(0).parameters, graph.node(1).parameters);
  EXPECT_EQ(graph.num_trainable(), 2 * 2 * 3 * 3 + 2);
}

TEST(Graph, AnAliasFindsTheParameter) {
  Graph graph;
  const ParameterId id = add(graph, "embedding", {3, 2}, kTrainable);
  graph.add_parameter_alias("head.weight", id);
  EXPECT_EQ(add(graph, "head.weight", {3, 2}, kTrainable), id);
  EXPECT_EQ(graph.parameters().size(), 1u);
  EXPECT_EQ(graph.parameters()[id].name, "embedding");
}

TEST(Graph, AnAliasTakesNoNameThatIsInUse) {
  Graph graph;
  const ParameterId id = add(graph, "a", {1}, kTrainable);
  add(graph, "b", {1}, kTrainable);
  graph.add_parameter_alias("c", id);
  for (const char* taken : {"a", "b", "c"})
    EXPECT_NE(message_of<InternalError>([&] {
                graph.add_parameter_alias(taken, id);
              }).find(fmt::format("the name {} is taken", taken)),
              std::string::npos);
}

TEST(Graph, AFrozenParameterMayStandWhereATrainableOneIsAskedFor) {
  Graph graph;
  const ValueId x = add_image(graph);
  const ParameterId weight = add(graph, "conv.weight", {1, 2, 1, 1}, kFrozen);
  const ValueId y =
      convolution(graph, x, "conv", {.out_channels = 1, .kernel = {1}, .bias = false});
  const Node& node = graph.node(graph.value(y).producer);
  EXPECT_EQ(node.parameters, (std::vector<ParameterId>{weight}));
  EXPECT_EQ(graph.parameters()[weight].role, kFrozen);
  EXPECT_FALSE(graph.has_trainable(node));
  EXPECT_EQ(graph.num_trainable(), 0);
}

TEST(Graph, ANodeIsTrainableByOneParameterButNotByBuffers) {
  Graph graph;
  const ValueId x = add_image(graph);
  add(graph, "conv.weight", {1, 2, 1, 1}, kFrozen);
  convolution(graph, x, "conv", {.out_channels = 1, .kernel = {1}});
  batch_norm(graph, x, "norm", {.affine = false});
  EXPECT_TRUE(graph.has_trainable(graph.node(0)));
  EXPECT_EQ(graph.node(1).buffers.size(), 2u);
  EXPECT_FALSE(graph.has_trainable(graph.node(1)));
  EXPECT_EQ(graph.num_trainable(), 1) << "the bias";
}

TEST(Graph, RefusesToShareAnotherShape) {
  Graph graph;
  const ParameterId id = add(graph, "w", {3, 2}, kTrainable);
  graph.add_parameter_alias("alias", id);
  const std::string message = "[graph] parameter w is 3x2 and cannot be shared as 2x3";
  EXPECT_EQ(refusal([&] { add(graph, "w", {2, 3}, kTrainable); }), message);
  EXPECT_EQ(refusal([&] { add(graph, "alias", {2, 3}, kTrainable); }), message);
}

TEST(Graph, RefusesToShareAWeightAndARunningStatistic) {
  Graph graph;
  add(graph, "weight", {2}, kTrainable);
  add(graph, "frozen", {2}, kFrozen);
  add(graph, "mean", {2}, kBuffer);
  const auto message = [](const std::string& name) {
    return fmt::format(
        "[graph] parameter {} is shared in two roles (weight, frozen weight, running statistic); "
        "give each its own",
        name);
  };
  EXPECT_EQ(refusal([&] { add(graph, "weight", {2}, kBuffer); }), message("weight"));
  EXPECT_EQ(refusal([&] { add(graph, "frozen", {2}, kBuffer); }), message("frozen"));
  EXPECT_EQ(refusal([&] { add(graph, "mean", {2}, kTrainable); }), message("mean"));
  EXPECT_EQ(refusal([&] { add(graph, "mean", {2}, kFrozen); }), message("mean"));
}

TEST(Graph, ARefusalNamesTheNodeAndLeavesTheGraphAsItWas) {
  Graph graph;
  const ValueId x = add_image(graph, {1, 2, 2, 2});
  relu(graph, x, "conv");
  const auto too_large = [&] {
    convolution(graph, x, "conv", {.out_channels = 1, .kernel = {3}, .bias = false});
  };
  EXPECT_EQ(refusal(too_large),
            "[convolution conv_2] spatial axis 0 of input 1x2x2x2 is too small: kernel 3 with "
            "dilation 1 and padding 0 + 0 gives 0 outputs; enlarge the image or the padding");
  EXPECT_EQ(graph.nodes().size(), 1u);
  EXPECT_EQ(graph.values().size(), 2u);
  EXPECT_EQ(graph.value(x).uses, (Uses{{0, 0}}));
  EXPECT_EQ(graph.value(relu(graph, x, "conv")).name, "conv_2");
}

TEST(Graph, RefusesValuesOfMoreThan2To48Elements) {
  Graph graph;
  const int64_t side = int64_t{1} << 24;
  const ValueId largest = add_image(graph, {1, 1, side, side});
  EXPECT_EQ(refusal([&] { relu(graph, largest, "fits"); }), "");
  const auto batch_of = [&](int64_t batch) { return add_image(graph, {batch, 1, side, side}); };
  expect_refusal([&] { batch_of(2); }, "2x1x16777216x16777216 has more than 2^48 elements");
  const int64_t huge = int64_t{1} << 32;  // huge * huge is 0 in 64 bits
  expect_refusal([&] { add_image(graph, {1, 1, huge, huge}); }, "has more than 2^48 elements");
  expect_refusal(
      [&] {
        concat(graph, {largest, largest}, "both");
      },
      "both] its output 1x2x16777216x16777216 has more than 2^48 elements; use a "
      "smaller input");
}

}  // namespace
}  // namespace tessera::graph_test
