// The oracle itself, held to numbers from paper and to autograd written out by hand.

#include "tessera/graph/reference.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "tessera/ops/pointwise/dropout.h"
#include "tests/unit/graph/two_layers.h"

namespace tessera::reference_test {
namespace {

at::Tensor leaf(const at::Tensor& tensor) { return tensor.clone().set_requires_grad(true); }

bool close(const at::Tensor& ours, const at::Tensor& expected) {
  return ours.defined() && at::allclose(ours, expected, 1e-12, 1e-14);
}

at::Tensor numbers(std::vector<double> values, const Shape& shape) {
  return at::tensor(values, at::kDouble).view(shape);
}

/// Two layers of one channel on two pixels: y = b relu(a x + 1) - 10, x = (1, 2), a = 3, b = 2.
TEST(Reference, EqualsACalculationOnPaper) {
  Graph graph;
  ValueId x = graph.add_input("x", ValueType::image({1, 1, 2}));
  x = convolution(graph, x, "a", {.out_channels = 1, .kernel = {1}});
  x = convolution(graph, relu(graph, x, "act"), "b", {.out_channels = 1, .kernel = {1}});
  graph.mark_output(x);
  mean_squared_error(graph, x, add_real_target(graph, x, "t"), "loss");
  std::vector<at::Tensor> parameters{numbers({3}, {1, 1, 1}), numbers({1}, {1}),
                                     numbers({2}, {1, 1, 1}), numbers({-10}, {1})};
  const ReferenceResult result = run_reference(
      graph, {numbers({1, 2}, {1, 1, 2}), numbers({0, 1}, {1, 1, 2})}, parameters, 1, 0);
  EXPECT_EQ(result.loss, 6.5);  // y - t = (-2, 3)
  EXPECT_TRUE(result.outputs.at(0).equal(numbers({-2, 4}, {1, 1, 2})));
  EXPECT_TRUE(result.input_gradients.at(0).equal(numbers({-12, 18}, {1, 1, 2})));
  const std::vector<double> expected{8, 2, 13, 1};
  for (size_t id = 0; id < expected.size(); ++id)
    EXPECT_EQ(result.gradients.at(id).item<double>(), expected[id]) << graph.parameters()[id].name;
}

TEST(Reference, EqualsAutogradByHand) {
  const Graph graph = two_layers();
  const std::vector<at::Tensor> inputs = noise_inputs(graph);
  std::vector<at::Tensor> parameters = starting_parameters(graph);
  std::map<std::string, at::Tensor> leaves;
  for (size_t id = 0; id < parameters.size(); ++id)
    leaves[graph.parameters()[id].name] = leaf(parameters[id]);
  const at::Tensor x = leaf(inputs[0]);
  const at::Tensor first = at::conv2d(x, leaves.at("conv1.weight"), leaves.at("conv1.bias"), 1, 1);
  const at::Tensor mean = first.mean({0, 2, 3}, true);
  const at::Tensor variance = (first - mean).square().mean({0, 2, 3}, true);
  const at::Tensor normal = (first - mean) / (variance + 1e-5).sqrt();
  const at::Tensor active = at::relu(normal * leaves.at("norm1.weight").view({1, 3, 1, 1}) +
                                     leaves.at("norm1.bias").view({1, 3, 1, 1}));
  const at::Tensor y = at::conv2d(active, leaves.at("conv2.weight"), leaves.at("conv2.bias"), 1, 1);
  const at::Tensor loss = (y - inputs[1]).square().mean();
  loss.backward();

  const ReferenceResult result = run_reference(graph, inputs, parameters, 1, 0);
  EXPECT_NEAR(result.loss, loss.item<double>(), 1e-13);
  EXPECT_TRUE(close(result.outputs.at(0), y.detach()));
  EXPECT_TRUE(close(result.input_gradients.at(0), x.grad()));
  EXPECT_FALSE(result.input_gradients.at(1).defined()) << "a target";
  ASSERT_EQ(result.gradients.size(), leaves.size());
  for (size_t id = 0; id < leaves.size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    if (parameter.role == ParameterRole::kBuffer)
      EXPECT_FALSE(result.gradients[id].defined()) << parameter.name;
    else
      EXPECT_TRUE(close(result.gradients[id], leaves.at(parameter.name).grad())) << parameter.name;
  }
}

TEST(Reference, UpdatesBuffersAndNothingElse) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 3, 4, 5}));
  batch_norm(graph, x, "norm", {.momentum = 0.3});
  std::vector<at::Tensor> parameters = starting_parameters(graph);
  const std::vector<at::Tensor> inputs = noise_inputs(graph);
  const at::Tensor image = inputs[0].clone();
  run_reference(graph, inputs, parameters, 1, 0);
  EXPECT_TRUE(inputs[0].equal(image));
  EXPECT_TRUE(close(parameters.at(2), 0.3 * image.mean({0, 2, 3})));
  EXPECT_TRUE(close(parameters.at(3), 0.7 + 0.3 * image.var({0, 2, 3}, /*unbiased=*/true)));
  EXPECT_TRUE(parameters[0].equal(at::ones({3}, at::kDouble)));
  EXPECT_TRUE(parameters[1].equal(at::zeros({3}, at::kDouble)));
}

/// One prediction with an error of d = (1, -2) for the first loss and (3, 0) for the second.
TEST(Reference, SumsAllLosses) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 1, 2}));
  const ValueId first = add_real_target(graph, x, "t1"), second = add_real_target(graph, x, "t2");
  mean_squared_error(graph, x, first, "loss1");
  mean_absolute_error(graph, x, second, "loss2", {.weight = 10});
  std::vector<at::Tensor> none;
  const ReferenceResult result = run_reference(
      graph, {numbers({1, 2}, {1, 1, 2}), numbers({0, 4}, {1, 1, 2}), numbers({-2, 2}, {1, 1, 2})},
      none, 1, 0);
  EXPECT_EQ(result.loss, (1.0 + 4.0) / 2 + 10 * 3.0 / 2);
  EXPECT_TRUE(result.input_gradients.at(0).equal(numbers({1 + 5, -2}, {1, 1, 2})))
      << result.input_gradients[0];
}

/// y = w (w x) with w = 3 and x = 2: dy/dw = 2 w x.
TEST(Reference, SumsTheGradientsOfASharedParameter) {
  Graph graph;
  ValueId x = graph.add_input("x", ValueType::image({1, 1, 1}));
  for (int i = 0; i < 2; ++i)
    x = convolution(graph, x, "w", {.out_channels = 1, .kernel = {1}, .bias = false});
  mean_absolute_error(graph, x, add_real_target(graph, x, "t"), "loss");
  std::vector<at::Tensor> parameters{numbers({3}, {1, 1, 1})};
  const ReferenceResult result =
      run_reference(graph, {numbers({2}, {1, 1, 1}), numbers({0}, {1, 1, 1})}, parameters, 1, 0);
  EXPECT_EQ(result.loss, 18);
  EXPECT_EQ(result.gradients.at(0).item<double>(), 12);
}

TEST(Reference, FrozenParametersHaveNoGradientAndUnreadOnesAZero) {
  Graph graph;
  ValueId x = graph.add_input("x", ValueType::image({1, 2, 3}));
  graph.add_parameter(
      {.name = "conv.weight", .shape = {1, 2, 1}, .role = ParameterRole::kFrozen, .initial = {}});
  x = convolution(graph, x, "conv", {.out_channels = 1, .kernel = {1}});
  graph.add_parameter({.name = "unread", .shape = {2}, .initial = {}});
  mean_squared_error(graph, x, add_real_target(graph, x, "t"), "loss");
  std::vector<at::Tensor> parameters = starting_parameters(graph);
  const ReferenceResult result = run_reference(graph, noise_inputs(graph), parameters, 1, 0);
  EXPECT_FALSE(result.gradients.at(0).defined());
  EXPECT_NE(result.gradients.at(1).item<double>(), 0);
  EXPECT_TRUE(result.gradients.at(2).equal(at::zeros({2}, at::kDouble)));
}

TEST(Reference, WithoutALossThereAreOutputsAlone) {
  Graph graph;
  graph.mark_output(relu(graph, graph.add_input("x", ValueType::image({1, 1, 2})), "act"));
  std::vector<at::Tensor> none;
  const ReferenceResult result = run_reference(graph, {numbers({-1, 2}, {1, 1, 2})}, none, 1, 0);
  EXPECT_EQ(result.loss, 0);
  EXPECT_TRUE(result.outputs.at(0).equal(numbers({0, 2}, {1, 1, 2})));
  EXPECT_TRUE(result.input_gradients.empty());
  EXPECT_TRUE(result.gradients.empty());
}

TEST(Reference, DifferentiatesWhereAutogradIsOff) {
  const Graph graph = two_layers();
  std::vector<at::Tensor> parameters = starting_parameters(graph);
  c10::NoGradGuard no_autograd;
  const ReferenceResult result = run_reference(graph, noise_inputs(graph), parameters, 1, 0);
  EXPECT_GT(result.gradients.at(0).abs().max().item<double>(), 0);
  EXPECT_FALSE(result.outputs.at(0).requires_grad());
  EXPECT_FALSE(c10::GradMode::is_enabled());
}

TEST(Reference, MasksAreFunctionsOfSeedAndStep) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 1, 100}));
  graph.mark_output(dropout(graph, x, "drop", {}));
  const auto output = [&](uint64_t seed, int64_t step) {
    std::vector<at::Tensor> none;
    return run_reference(graph, {at::ones({1, 1, 100}, at::kDouble)}, none, seed, step)
        .outputs.at(0);
  };
  EXPECT_TRUE(output(1, 5).equal(output(1, 5)));
  EXPECT_FALSE(output(1, 5).equal(output(1, 6)));
  EXPECT_FALSE(output(1, 5).equal(output(2, 5)));
}

}  // namespace
}  // namespace tessera::reference_test
