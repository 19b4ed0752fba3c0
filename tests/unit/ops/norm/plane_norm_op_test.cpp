// Normalisations with what follows them in the same pass: a sum with another value, a ReLU, or
// both.

#include "tessera/ops/norm/plane_norm_op.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/graph/script.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/norm/layer_norm.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/refusal.h"

namespace tessera::plane_norm_op_test {
namespace {

using MakeNorm = ValueId (*)(Graph& graph, ValueId x);

constexpr double kEpsilon = 1e-3;
const std::vector<MakeNorm> kNorms{
    [](Graph& graph, ValueId x) {
      return batch_norm(graph, x, "norm", {.epsilon = kEpsilon, .momentum = 0.3});
    },
    [](Graph& graph, ValueId x) {
      return batch_norm(
          graph, x, "norm",
          {.epsilon = kEpsilon, .statistics = BatchNormOptions::Statistics::kRunning});
    },
    [](Graph& graph, ValueId x) {
      return batch_norm(graph, x, "norm", {.epsilon = kEpsilon, .affine = false, .running = false});
    },
    [](Graph& graph, ValueId x) {
      return group_norm(graph, x, "norm", {.groups = 2, .epsilon = kEpsilon});
    },
    [](Graph& graph, ValueId x) {
      return instance_norm(graph, x, "norm",
                           {.epsilon = kEpsilon, .affine = true, .track_running = true});
    },
};
const std::vector<NormTail> kTails{{true, NormActivation::kNone},
                                   {false, NormActivation::kRelu},
                                   {true, NormActivation::kRelu},
                                   {false, NormActivation::kRelu6},
                                   {true, NormActivation::kRelu6}};

/// The norm with a tail, on inputs of the shape.
Graph with_tail(MakeNorm make_norm, const Shape& shape, const NormTail& tail) {
  Graph plain, graph;
  make_norm(plain, plain.add_input("x", ValueType::image(shape)));
  const Node& node = plain.node(0);
  for (const Parameter& parameter : plain.parameters()) graph.add_parameter(parameter);
  std::vector<ValueId> inputs{graph.add_input("x", ValueType::image(shape))};
  if (tail.adds) inputs.push_back(graph.add_input("added", ValueType::image(shape)));
  graph.add_node("norm", plane_norm_op(*node.op)->with_tail(tail), inputs, node.parameters,
                 node.buffers);
  return graph;
}

const Op& op_with(const NormTail& tail) {
  static Graph graph;
  graph = with_tail(kNorms[0], {1, 2, 4}, tail);
  return *graph.node(0).op;
}

class RandomTail : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomTail, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Shape shape{between(1, 3), 2 * between(1, 2)};
  for (int64_t axis = between(1, 3); axis > 0; --axis) shape.push_back(between(2, 9));
  for (MakeNorm make_norm : kNorms)
    for (const NormTail& tail : kTails) {
      SCOPED_TRACE(fmt::format("seed {}, {}", GetParam(), to_string(shape)));
      check_graph_node(with_tail(make_norm, shape, tail), GetParam());
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTail, testing::Range<uint64_t>(0, 8));

/// Rows longer than a block of the sums, whose ends are no whole register.
TEST(NormTails, MatchReferenceOnLongRows) {
  for (const NormTail& tail : kTails) check_graph_node(with_tail(kNorms[0], {1, 2, 4103}, tail), 3);
}

/// Weights so large that ReLU6 holds back many values.
TEST(NormTails, MatchReferenceAbove6) {
  const ValueType type = ValueType::image({3, 2, 7, 5});
  at::manual_seed(5);
  for (bool adds : {false, true}) {
    const Op& op = op_with({adds, NormActivation::kRelu6});
    const std::vector<at::Tensor> inputs(adds ? 2 : 1, at::rand(type.shape(), at::kDouble));
    const at::Tensor ones = at::ones({2}, at::kDouble);
    check_op(op, std::vector<ValueType>(inputs.size(), type), inputs, {6 * ones, 4 * ones},
             {ones.clone(), ones.clone()}, 5);
  }
}

TEST(NormTails, MatchReferenceByMicroBatches) {
  for (const NormTail& tail : kTails) {
    Graph graph;
    const ValueType type = ValueType::image({5, 2, 4, 3});
    std::vector<ValueId> inputs{graph.add_input("x", type)};
    if (tail.adds) inputs.push_back(graph.add_input("added", type));
    const auto norm = batch_norm_op({.epsilon = kEpsilon, .affine = false, .running = false});
    graph.add_node("norm", plane_norm_op(*with_batch_parts(*norm, 2))->with_tail(tail), inputs);
    check_graph_node(graph, 4, {.micro_batches = 2});
  }
}

TEST(NormTails, AreNamed) {
  EXPECT_EQ(op_with({}).kind(), "batch_norm");
  EXPECT_EQ(op_with({true}).kind(), "batch_norm_add");
  EXPECT_EQ(op_with({false, NormActivation::kRelu}).kind(), "batch_norm_relu");
  EXPECT_EQ(op_with({true, NormActivation::kRelu}).kind(), "batch_norm_add_relu");
  EXPECT_EQ(op_with({false, NormActivation::kRelu6}).kind(), "batch_norm_relu6");
}

TEST(NormTails, KeepTheOutputOnlyWhereItTellsWhatTheReluLetThrough) {
  for (const NormTail& tail : kTails) {
    const Op& op = op_with(tail);
    EXPECT_EQ(op.keeps_output(), tail.adds && tail.activation != NormActivation::kNone);
    EXPECT_EQ(op.cheap_to_recompute(), !tail.adds);
    EXPECT_TRUE(op.keeps_input(0));
    EXPECT_FALSE(op.keeps_input(1));
  }
}

TEST(NormTails, StayWithRunningStatistics) {
  const NormTail tail{true, NormActivation::kRelu};
  EXPECT_EQ(with_running_statistics(op_with(tail))->kind(), "batch_norm_add_relu");
  const Graph instance = with_tail(kNorms[4], {1, 2, 4}, tail);
  EXPECT_EQ(with_running_statistics(*instance.node(0).op)->kind(), "batch_norm_add_relu");
}

TEST(NormTails, AreNotForWeightsOfEachElement) {
  Graph graph;
  layer_norm(graph, graph.add_input("x", ValueType::image({1, 2, 4})), "norm",
             {.over = LayerNormOptions::Over::kSample});
  EXPECT_FALSE(plane_norm_op(*graph.node(0).op)->can_add());
  EXPECT_FALSE(plane_norm_op(*graph.node(0).op)->can_activate());
}

TEST(NormTails, AreWrittenForPyTorch) {
  ScriptArgs args;
  args.inputs = {"x", "other"};
  args.parameters = {"w", "b"};
  args.buffers = {"m", "v"};
  args.training = [] { return std::string("True"); };
  const std::string script = *op_with({true, NormActivation::kRelu}).script(args);
  EXPECT_TRUE(script.starts_with("torch.relu(torch.add(torch.batch_norm(x, w, b, m, v, True"))
      << script;
  EXPECT_TRUE(script.ends_with(", other))")) << script;
}

TEST(NormTails, RefuseWhatIsNotAlike) {
  Graph graph = with_tail(kNorms[0], {1, 2, 4}, {true});
  const ValueId other = graph.add_input("other", ValueType::image({1, 2, 5}));
  expect_refusal(
      [&] {
        graph.add_node("sum", graph.node(0).op, {graph.inputs()[0], other},
                       graph.node(0).parameters, graph.node(0).buffers);
      },
      "they must be alike");
}

}  // namespace
}  // namespace tessera::plane_norm_op_test
