// Steps of a chain, and the derivatives that adjoint sweeps are made of: the input gradients of an
// operator at a point that somebody else has computed, on any cut.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/graph/reference.h"
#include "tessera/graph/step_numbers.h"
#include "tessera/ops/chain/chain_arithmetic.h"
#include "tessera/ops/chain/detached.h"
#include "tessera/ops/chain/jump.h"
#include "tessera/ops/chain/linearised.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/max_unpool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/concat.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::chain_test {
namespace {

TEST(ChainStep, EqualsAutograd) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Graph graph;
    const ValueType image = ValueType::image({2, 3, 9, 7});
    const ValueId x = graph.add_input("x", image), y = graph.add_input("y", image);
    chain_step(graph, x, y, "step", 0.37);
    turning_point(graph, x, y, "turn");
    graph.add_node("scaled", scaled(-1), {x});
    check_graph_node(graph, seed);
  }
}

/// The derivative of the graph's last node, at a random point.
void check_derivative(const Graph& graph, uint64_t seed) {
  const Node& node = graph.nodes().back();
  at::manual_seed(seed);
  const auto random = [](const Shape& shape) { return at::rand(shape, at::kDouble) * 2 - 1; };
  std::vector<at::Tensor> changes, point, parameters;
  std::vector<ValueType> types;
  for (const ValueType& type : node.types.inputs) {
    changes.push_back(random(type.shape()));
    point.push_back(random(type.shape()));
    types.push_back(type);
  }
  for (ParameterId id : node.parameters) parameters.push_back(random(graph.parameters()[id].shape));
  const at::Tensor output = node.op->reference({&node.name, seed, 0, point, parameters, {}});
  for (ValueId value : inputs_of_point(node)) types.push_back(graph.type(value));
  std::vector<at::Tensor> inputs = changes;
  if (!inputs_of_point(node).empty()) inputs.insert(inputs.end(), point.begin(), point.end());
  if (node.op->keeps_output()) inputs.push_back(output);
  EXPECT_TRUE(can_be_linearised(node));
  check_op(*linearised(node), types, inputs, parameters, {}, seed);
}

void check_all(const std::function<void(Graph&, ValueId)>& add_node) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Graph graph;
    add_node(graph, graph.add_input("x", ValueType::image({2, 4, 9, 7})));
    check_derivative(graph, seed);
  }
}

TEST(Linearised, EqualsAutogradForProducts) {
  check_all([](Graph& graph, ValueId x) {
    convolution(graph, x, "conv", {.out_channels = 3, .kernel = {3}, .padding = {1}});
  });
  check_all([](Graph& graph, ValueId x) {
    convolution(graph, x, "conv",
                {.out_channels = 4, .kernel = {3}, .dilation = {2}, .padding = {2}, .groups = 4});
  });
  check_all([](Graph& graph, ValueId x) {
    transposed_convolution(graph, x, "up",
                           {.out_channels = 4, .kernel = {3}, .padding = {1}, .bias = false});
  });
}

TEST(Linearised, EqualsAutogradForNorms) {
  check_all([](Graph& graph, ValueId x) { batch_norm(graph, x, "norm"); });
  check_all([](Graph& graph, ValueId x) {
    batch_norm(graph, x, "norm", {.activation = BatchNormOptions::Activation::kRelu});
  });
  check_all([](Graph& graph, ValueId x) { group_norm(graph, x, "norm", {.groups = 2}); });
  check_all([](Graph& graph, ValueId x) { instance_norm(graph, x, "norm", {.affine = true}); });
}

TEST(Linearised, EqualsAutogradForFunctionsOfAnElement) {
  check_all([](Graph& graph, ValueId x) { relu(graph, x, "relu"); });
  check_all([](Graph& graph, ValueId x) { dropout(graph, x, "drop", {.probability = 0.4}); });
  check_all([](Graph& graph, ValueId x) { graph.add_node("scaled", scaled(-1), {x}); });
  for (PointwiseFunction function :
       {PointwiseFunction::kTanh, PointwiseFunction::kSigmoid, PointwiseFunction::kGelu})
    check_all([&](Graph& graph, ValueId x) { pointwise(graph, x, "act", {function}); });
  check_all([&](Graph& graph, ValueId x) {
    pointwise(graph, x, "affine", {PointwiseFunction::kAffine, 0.7, 0.1});
  });
}

TEST(Linearised, EqualsAutogradForSeveralInputs) {
  check_all([](Graph& graph, ValueId x) {
    const ValueId y = graph.add_input("y", graph.type(x));
    arithmetic(graph, x, y, "mul", Arithmetic::kMultiply);
  });
  check_all([](Graph& graph, ValueId x) {
    concat(graph, {x, graph.add_input("y", graph.type(x))}, "cat");
  });
  check_all([](Graph& graph, ValueId x) {
    chain_step(graph, x, graph.add_input("y", graph.type(x)), "step", 0.3);
  });
}

/// What forward saves is found again.
TEST(Linearised, EqualsAutogradForPools) {
  check_all([](Graph& graph, ValueId x) {
    max_pool(graph, x, "pool", {.kernel = {3}, .stride = {1}, .padding = {1}});
  });
  check_all([](Graph& graph, ValueId x) {
    max_pool(graph, x, "pool", {.kernel = {17}, .stride = {2}, .padding = {8}});
  });
  check_all([](Graph& graph, ValueId x) {
    average_pool(graph, x, "pool", {.kernel = {3}, .stride = {1}, .padding = {1}});
  });
  check_all([](Graph& graph, ValueId x) { spatial_reduction(graph, x, "rows", {.axes = {0}}); });
}

TEST(Linearised, IsNotForInputsWithoutAGradient) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 4, 8, 8}));
  const PoolOptions halves{.kernel = {2}, .stride = {2}};
  const ValueId pooled = max_pool(graph, x, "pool", halves);
  EXPECT_TRUE(can_be_linearised(graph.nodes().back()));
  max_unpool(graph, pooled, x, "unpool", halves);
  EXPECT_FALSE(can_be_linearised(graph.nodes().back()));
}

TEST(Jump, IsMeasuredAndIsNoPartOfTheLoss) {
  Graph graph;
  const ValueType image = ValueType::image({2, 3, 5, 4});
  const ValueId arrived = graph.add_input("arrived", image),
                start = graph.add_input("start", image);
  measure_jump(graph, arrived, start, "first");
  measure_jump(graph, start, start, "second");
  EXPECT_EQ(num_step_numbers(graph), 3);
  const at::Tensor a = at::rand(image.shape(), at::kDouble);
  std::vector<at::Tensor> none;
  const ReferenceResult result = run_reference(graph, {a, 2 * a}, none, 1, 0);
  ASSERT_EQ(result.measured.size(), 2u);
  EXPECT_NEAR(*relative_jump(result.measured), std::sqrt(1.0 / 8), 1e-14);
  EXPECT_EQ(result.loss, 0);
  EXPECT_FALSE(relative_jump({}));
}

/// The end's gradient g comes back as 2 g, and half of g is taken away.
TEST(Jump, OfGradientsIsMeasuredAndTaughtToNobody) {
  Graph graph;
  const ValueType image = ValueType::image({2, 3, 5, 4});
  const ValueId x = graph.add_input("x", image);
  const ValueId start = measured_start(graph, x, "start");
  const ValueId taken = graph.add_node("taken", gradient_taken_away(), {start});
  const ValueId twice = chain_step(graph, start, start, "twice", 1);
  const ValueId end = chain_step(graph, twice, taken, "end", 0.5);
  mean_squared_error(graph, end, graph.add_input("target", image), "loss");
  EXPECT_EQ(num_step_numbers(graph), 5);
  const at::Tensor a = at::rand(image.shape(), at::kDouble);
  std::vector<at::Tensor> none;
  const ReferenceResult result = run_reference(graph, {a, at::zeros_like(a)}, none, 1, 0);
  EXPECT_NEAR(result.loss, 4 * a.square().mean().item<double>(), 1e-14);
  const double gradient = (4 * a / a.numel()).square().sum().item<double>();  // of the end
  ASSERT_EQ(result.measured.size(), 4u);
  EXPECT_NEAR(result.measured[2], 1.5 * 1.5 * gradient, 1e-14);
  EXPECT_NEAR(result.measured[3], 0.5 * 0.5 * gradient, 1e-14);
  EXPECT_NEAR(*relative_jump_of_gradients(result.measured), 3, 1e-12);
  EXPECT_FALSE(result.input_gradients[0].defined());
  EXPECT_FALSE(relative_jump_of_gradients({1, 1}));
}

TEST(Linearised, OfALinearOperatorNeedsNoPoint) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 4, 8, 8}));
  chain_step(graph, x, graph.add_input("y", graph.type(x)), "step", 0.3);
  EXPECT_TRUE(inputs_of_point(graph.nodes().back()).empty());
  relu(graph, x, "relu");
  EXPECT_EQ(inputs_of_point(graph.nodes().back()).size(), 2u);  // its sign is that of the output
}

TEST(Detached, GivesNoGradientAndLeavesRunningStatisticsAlone) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 4, 8, 8}));
  batch_norm(graph, x, "norm");
  const Node& norm = graph.nodes().back();
  EXPECT_TRUE(buffers_of_copy(norm).empty());
  const std::shared_ptr<const Op> copy = detached(norm);
  EXPECT_FALSE(copy->differentiable(0));
  EXPECT_FALSE(copy->keeps_input(0));
  EXPECT_FALSE(copy->trains_parameters());
  batch_norm(graph, x, "fixed", {.statistics = BatchNormOptions::Statistics::kRunning});
  EXPECT_EQ(buffers_of_copy(graph.nodes().back()), graph.nodes().back().buffers);
}

}  // namespace
}  // namespace tessera::chain_test
