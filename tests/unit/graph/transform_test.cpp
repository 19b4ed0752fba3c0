// Copies of a graph with something else in a node's place, and graphs without what nobody reads.

#include "tessera/graph/transform.h"

#include <gtest/gtest.h>

#include "tessera/graph/reference.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tests/unit/graph/two_layers.h"

namespace tessera::transform_test {
namespace {

using enum ParameterRole;
using Names = std::vector<std::string>;

const ValueType kImage = ValueType::image({1, 2, 4, 4});

/// Every node as "name(inputs)".
Names calls(const Graph& graph) {
  Names calls;
  for (const Node& node : graph.nodes()) {
    std::string inputs;
    for (ValueId input : node.inputs)
      inputs += (inputs.empty() ? "" : ", ") + graph.value(input).name;
    calls.push_back(fmt::format("{}({})", node.name, inputs));
  }
  return calls;
}

Names names_of(const Graph& graph, const std::vector<ValueId>& values) {
  Names names;
  for (ValueId value : values) names.push_back(graph.value(value).name);
  return names;
}

std::vector<ParameterRole> roles(const Graph& graph) {
  std::vector<ParameterRole> roles;
  for (const Parameter& parameter : graph.parameters()) roles.push_back(parameter.role);
  return roles;
}

std::optional<ValueId> copy_all(Graph&, const Node&, const std::vector<ValueId>&) { return {}; }

/// A convolution without a bias, which keeps the shape.
ValueId conv(Graph& graph, ValueId x, const std::string& name) {
  return convolution(graph, x, name, {.out_channels = 2, .kernel = {1}, .bias = false});
}

/// Data sets of several domains have batches of their own.
TEST(Transform, InputsKeepTheirBatches) {
  Graph graph;
  for (int64_t batch : {3, 5}) {
    const ValueType image = ValueType::image({batch, 2, 4, 4});
    graph.mark_output(conv(graph, graph.add_input(fmt::format("image{}", batch), image), "conv"));
  }
  const Graph copied = transform(graph, copy_all, UnreadInputs::kDrop);
  ASSERT_EQ(copied.inputs().size(), 2u);
  EXPECT_EQ(copied.type(copied.inputs()[0]).batch(), 3);
  EXPECT_EQ(copied.type(copied.outputs()[1]).batch(), 5);
}

TEST(Transform, ACopyIsTheSame) {
  const Graph graph = two_layers();
  const Graph copied = transform(graph, copy_all);
  EXPECT_EQ(calls(copied), calls(graph));
  EXPECT_EQ(names_of(copied, copied.inputs()), (Names{"image", "target"}));
  EXPECT_EQ(names_of(copied, copied.outputs()), (Names{"conv2"}));
  EXPECT_EQ(roles(copied), roles(graph));
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    EXPECT_EQ(copied.nodes()[id].op, graph.nodes()[id].op);
    EXPECT_EQ(copied.nodes()[id].parameters, graph.nodes()[id].parameters);
    EXPECT_EQ(copied.nodes()[id].buffers, graph.nodes()[id].buffers);
  }
}

TEST(Transform, ReadersOfARemovedNodeReadItsInput) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId dropped = dropout(graph, x, "drop1", {});
  graph.mark_output(dropout(graph, conv(graph, dropped, "conv"), "drop2", {}));
  graph.mark_output(dropped);
  const Graph without =
      transform(graph, [](Graph&, const Node& node, const std::vector<ValueId>& inputs) {
        return node.op->kind() == "dropout" ? std::optional(inputs[0]) : std::nullopt;
      });
  EXPECT_EQ(calls(without), (Names{"conv(image)"}));
  EXPECT_EQ(names_of(without, without.outputs()), (Names{"conv", "image"}));
}

TEST(Transform, SeveralNodesMayStandForOne) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  graph.mark_output(conv(graph, relu(graph, x, "act"), "conv"));
  const Graph smooth =
      transform(graph,
                [](Graph& result, const Node& node,
                   const std::vector<ValueId>& inputs) -> std::optional<int> {
                  if (node.op->kind() != "relu") return {};
                  const ValueId scaled =
                      pointwise(result, inputs[0], node.name, {PointwiseFunction::kAffine, 2, 0});
                  return pointwise(result, scaled, node.name, {PointwiseFunction::kTanh});
                });
  EXPECT_EQ(calls(smooth), (Names{"act(image)", "act_2(act)", "conv(act_2)"}));
}

TEST(Transform, InputsThatNothingReadsGoWhereAskedFor) {
  Graph graph;
  graph.add_input("unread", kImage);
  const ValueId x = graph.add_input("image", kImage);
  graph.mark_output(relu(graph, x, "act"));
  const Graph kept = transform(graph, copy_all);
  EXPECT_EQ(names_of(kept, kept.inputs()), (Names{"unread", "image"}));
  const Graph fewer = transform(graph, copy_all, UnreadInputs::kDrop);
  EXPECT_EQ(names_of(fewer, fewer.inputs()), (Names{"image"}));
  EXPECT_EQ(calls(fewer), (Names{"act(image)"}));
}

TEST(Prune, WithoutLossesThereAreNoTargets) {
  const Graph graph = two_layers();
  const Graph applied = prune(graph, Losses::kDrop);
  EXPECT_EQ(names_of(applied, applied.inputs()), (Names{"image"}));
  EXPECT_EQ(names_of(applied, applied.outputs()), (Names{"conv2"}));
  EXPECT_EQ(calls(applied),
            (Names{"conv1(image)", "norm1(conv1)", "relu1(norm1)", "conv2(relu1)"}));
  EXPECT_EQ(roles(applied), roles(graph));
}

TEST(Prune, KeepsLossesAndWhatTheyRead) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId y = conv(graph, x, "conv");
  mean_squared_error(graph, y, graph.add_input("target", kImage), "loss");
  const Graph kept = prune(graph, Losses::kKeep);
  EXPECT_EQ(calls(kept), (Names{"conv(image)", "loss(conv, target)"}));
  EXPECT_TRUE(prune(graph, Losses::kDrop).nodes().empty()) << "nobody reads the prediction";
}

TEST(Prune, DropsBranchesThatNobodyReadsAndFreezesTheirParameters) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId y = conv(graph, x, "trunk");
  conv(graph, relu(graph, y, "act"), "dead");
  graph.mark_output(conv(graph, y, "head"));
  const Graph pruned = prune(graph, Losses::kKeep);
  EXPECT_EQ(calls(pruned), (Names{"trunk(image)", "head(trunk)"}));
  EXPECT_EQ(roles(pruned), (std::vector{kTrainable, kFrozen, kTrainable}));
  EXPECT_EQ(pruned.parameters()[1].name, "dead.weight");
}

TEST(Prune, FreezesAHeadThatOnlyALossReadAndNotWhatItShares) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId y = conv(graph, x, "shared");
  const ValueId aux = conv(graph, conv(graph, y, "shared"), "aux");
  mean_squared_error(graph, aux, graph.add_input("target", kImage), "loss");
  graph.mark_output(y);
  const Graph applied = prune(graph, Losses::kDrop);
  EXPECT_EQ(calls(applied), (Names{"shared(image)"}));
  EXPECT_EQ(roles(applied), (std::vector{kTrainable, kFrozen}));
}

TEST(Prune, KeepsNormsForTheirRunningStatistics) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId y = conv(graph, x, "conv");
  relu(graph, batch_norm(graph, y, "tracked"), "dead1");
  relu(graph, batch_norm(graph, y, "untracked", {.running = false}), "dead2");
  graph.mark_output(relu(graph, x, "act"));
  EXPECT_EQ(calls(prune(graph, Losses::kDrop)),
            (Names{"conv(image)", "tracked(conv)", "act(image)"}));
}

TEST(Prune, OutputsKeepTheirBits) {
  const Graph graph = two_layers();
  const Graph applied = prune(graph, Losses::kDrop);
  std::vector<at::Tensor> inputs = noise_inputs(graph);
  std::vector<at::Tensor> before = starting_parameters(graph), after = starting_parameters(graph);
  const at::Tensor expected = run_reference(graph, inputs, before, 1, 0).outputs.at(0);
  inputs.pop_back();
  EXPECT_TRUE(run_reference(applied, inputs, after, 1, 0).outputs.at(0).equal(expected));
}

/// A dropout alone is the identity at inference: the input is the output, and stays.
TEST(Transform, AnInputThatIsAnOutputIsKept) {
  Graph graph;
  const ValueId image = graph.add_input("image", ValueType::image({1, 2, 4, 4}));
  graph.mark_output(image);
  const Graph pruned = prune(graph, Losses::kDrop);
  ASSERT_EQ(pruned.inputs().size(), 1u);
  EXPECT_EQ(pruned.outputs(), pruned.inputs());
}

TEST(WithBatch, ChangesTheBatchAndNothingElse) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({4, 2, 6, 5}));
  graph.mark_output(conv(graph, x, "conv1"));
  graph.add_input("target", ValueType{{{AxisKind::kBatch, 4, -1, {}}}, Element::kIndex});
  const Graph smaller = with_batch(graph, 3);
  EXPECT_EQ(calls(smaller), calls(graph));
  EXPECT_EQ(smaller.type(smaller.inputs()[0]).shape(), (Shape{3, 2, 6, 5}));
  EXPECT_EQ(smaller.type(smaller.outputs()[0]).shape(), (Shape{3, 2, 6, 5}));
  EXPECT_EQ(smaller.type(smaller.inputs()[1]).shape(), (Shape{3}));
  EXPECT_EQ(smaller.parameters().size(), graph.parameters().size());
}

TEST(WithFrozen, TakesTrainableOnesOnly) {
  Graph graph;
  graph.add_parameter({.name = "a", .shape = {1}, .initial = {}});
  graph.add_parameter({.name = "b", .shape = {1}, .role = kBuffer, .initial = {}});
  graph.add_parameter({.name = "c", .shape = {1}, .initial = {}});
  const auto not_a = [](const Parameter& parameter) { return parameter.name != "a"; };
  EXPECT_EQ(roles(with_frozen(graph, not_a)),
            (std::vector<ParameterRole>{kTrainable, kBuffer, kFrozen}));
}

}  // namespace
}  // namespace tessera::transform_test
