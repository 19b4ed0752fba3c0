// A proof that passes says something only if it fails where an operator is wrong.

#include "tessera/proof/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tessera/graph/reference.h"
#include "tessera/loss/add_losses.h"
#include "tessera/ops/conv/convolution.h"
#include "tests/unit/proof/flawed_shift.h"

namespace tessera::verify_test {
namespace {

ValueId add_image(Graph& graph) { return graph.add_input("image", ValueType::image({2, 2, 6, 8})); }
ValueId add_convolution(Graph& graph, ValueId x, const std::string& name) {
  return convolution(graph, x, name, {.out_channels = 3, .kernel = {3}, .padding = {1}});
}
void finish(Graph& graph, ValueId logits) {
  graph.mark_output(logits);
  add_losses(graph, {.spec = "cross_entropy"});
}

/// The shift between two convolutions.
Graph network(const Flaws& flaws = {}) {
  Graph graph;
  ValueId x = add_convolution(graph, add_image(graph), "conv1");
  x = flawed_shift(graph, x, "shift", flaws);
  finish(graph, add_convolution(graph, x, "conv2"));
  return graph;
}

/// The shift reads the image.
Graph shift_first(const Flaws& flaws) {
  Graph graph;
  const ValueId x = flawed_shift(graph, add_image(graph), "shift", flaws);
  finish(graph, add_convolution(graph, x, "conv"));
  return graph;
}

/// The shift gives the output.
Graph shift_last(const Flaws& flaws) {
  Graph graph;
  const ValueId x = add_convolution(graph, add_image(graph), "conv");
  finish(graph, flawed_shift(graph, x, "shift", flaws));
  return graph;
}

/// Two ranks, side by side.
VerifyOptions on_two_ranks(int64_t steps = 1) {
  VerifyOptions options;
  options.plan.space = {1, 2};
  options.steps = steps;
  return options;
}

TEST(Verify, ARightOperatorPasses) {
  const VerifyReport report = verify(network(), on_two_ranks(2));
  EXPECT_TRUE(report.ok) << report.worst;
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.losses.size(), 2u);
  EXPECT_TRUE(report.sensitivities.empty()) << "there was no need to measure";
  EXPECT_TRUE(report.gradients.empty() && report.parameters.empty()) << "nobody wants them";
}

TEST(Verify, AWrongInputGradientIsCaught) {
  const VerifyReport report = verify(shift_first({.input_gradient = 1e-3}), on_two_ranks());
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.worst, "input gradient image at step 0");
  EXPECT_NEAR(report.input_grad_rel, 1e-3, 1e-6);
  EXPECT_LT(report.param_grad_rel, 1e-10);
}

/// Behind weights of zero the image has no gradient, and so no scale of its own.
TEST(Verify, AnInputGradientOfZeroIsJudgedByTheParameters) {
  const auto passes = [](double offset) {
    Graph graph;
    graph.add_parameter({"conv.weight", {3, 2, 3, 3}, ParameterRole::kTrainable, {}});
    const Flaws flaws{.input_gradient_offset = offset};
    const ValueId x = flawed_shift(graph, add_image(graph), "shift", flaws);
    finish(graph, add_convolution(graph, x, "conv"));
    return verify(graph, on_two_ranks()).ok;
  };
  EXPECT_TRUE(passes(1e-19));
  EXPECT_FALSE(passes(1e-12));
}

TEST(Verify, AWrongWeightGradientIsCaught) {
  const VerifyReport report = verify(network({.weight_gradient = 0.5}), on_two_ranks());
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.worst, "gradient of shift.gain at step 0");
  EXPECT_NEAR(report.param_grad_rel, 0.5, 1e-6);
  EXPECT_GT(report.param_grad_l2, 1e-3);
  EXPECT_GT(report.updated_param_rel, 1e-10);
  EXPECT_LT(report.input_grad_rel, 1e-10);
}

TEST(Verify, AWrongOutputIsCaught) {
  const VerifyReport report = verify(shift_last({.forward = 1e-3}), on_two_ranks());
  EXPECT_FALSE(report.ok);
  EXPECT_NEAR(report.output_rel, 1e-3, 1e-6);
  EXPECT_GT(report.loss_rel, 1e-10);
}

/// On one rank there is no halo: only a cut image shows that its gradient is missing.
TEST(Verify, AMissingHaloGradientIsCaughtWhereTheImageIsCut) {
  const Graph graph = network({.drops_halo_gradient = true});
  VerifyOptions options = on_two_ranks();
  const VerifyReport cut = verify(graph, options);
  EXPECT_FALSE(cut.ok);
  EXPECT_GT(cut.input_grad_rel, 1e-3);
  EXPECT_GT(cut.param_grad_rel, 1e-3);
  EXPECT_LT(cut.output_rel, 1e-10);
  options.plan = {};
  EXPECT_TRUE(verify(graph, options).ok);
}

TEST(Verify, EveryStepIsCompared) {
  const Graph graph = network({.weight_gradient = 0.5});
  EXPECT_LT(verify(graph, on_two_ranks(1)).output_rel, 1e-10);
  EXPECT_GT(verify(graph, on_two_ranks(2)).output_rel, 1e-10);  // the first update was wrong
}

TEST(Verify, WhatIsNotANumberIsCaught) {
  const VerifyReport report = verify(shift_last({.forward = NAN}), on_two_ranks());
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.output_rel, std::numeric_limits<double>::infinity());
}

TEST(Verify, LimitsDependOnTheElementTypeAndTheOptimiser) {
  const auto passes = [](double error, at::ScalarType real, OptimiserKind optimiser) {
    VerifyOptions options = on_two_ranks();
    options.real = real;
    options.optimiser = optimiser;
    return verify(shift_last({.forward = error}), options).ok;
  };
  EXPECT_TRUE(passes(0, at::kFloat, OptimiserKind::kSgd));
  EXPECT_TRUE(passes(1e-6, at::kFloat, OptimiserKind::kSgd));
  EXPECT_FALSE(passes(1e-3, at::kFloat, OptimiserKind::kSgd));
  EXPECT_FALSE(passes(1e-6, at::kDouble, OptimiserKind::kSgd));
  EXPECT_FALSE(passes(1e-6, at::kDouble, OptimiserKind::kAdamW));
  EXPECT_FALSE(passes(1e-9, at::kDouble, OptimiserKind::kSgd));
  EXPECT_TRUE(passes(1e-9, at::kDouble, OptimiserKind::kAdamW));
}

TEST(Verify, InFloat32TheLossIsWrongThoughTheOutputsAreRight) {
  VerifyOptions options = on_two_ranks();
  options.real = at::kFloat;
  const VerifyReport report = verify(shift_last({.forward = 9e-5}), options);
  EXPECT_FALSE(report.ok);
  EXPECT_LE(report.output_rel, 1e-4);
  EXPECT_GT(report.loss_rel, 1e-5);
}

TEST(Verify, InFloat32AnOutputIsWrongThoughTheLossIsRight) {
  const auto report_of = [](double error) {
    Graph graph;
    const ValueId x = add_convolution(graph, add_image(graph), "conv");
    finish(graph, x);
    graph.mark_output(flawed_shift(graph, x, "shift", {.forward = error}));
    VerifyOptions options = on_two_ranks();
    options.real = at::kFloat;
    return verify(graph, options);
  };
  EXPECT_TRUE(report_of(2e-5).ok);
  const VerifyReport wrong = report_of(2e-4);
  EXPECT_FALSE(wrong.ok);
  EXPECT_EQ(wrong.worst, "output shift at step 0");
  EXPECT_LE(wrong.loss_rel, 1e-5);
}

/// Weights, gradients and momentum; values are an estimate, but they
/// are at least all that a convolution's backward reads.
TEST(Verify, TheOraclesBytesAreThoseOfOneWorkerThatHasAll) {
  const Graph graph = network();
  VerifyOptions options = on_two_ranks();
  int64_t numbers = 0;
  for (const Parameter& parameter : graph.parameters()) numbers += parameter.numel();
  const OracleBytes sgd = oracle_bytes(graph, options);
  EXPECT_EQ(sgd.weights, numbers * 8 * 3);
  EXPECT_EQ(sgd.kept, 0);
  EXPECT_GE(sgd.values, 2 * 8 * 6 * (2 + 3 + 3) * 8);
  EXPECT_EQ(sgd.while_measuring() - sgd.besides_placement(), sgd.weights);
  options.optimiser = OptimiserKind::kAdamW;
  options.keep_gradients = true;
  const OracleBytes adamw = oracle_bytes(graph, options);
  EXPECT_EQ(adamw.weights, numbers * 8 * 4);
  EXPECT_EQ(adamw.kept, numbers * 8);
  options.real = at::kFloat;
  EXPECT_EQ(oracle_bytes(graph, options).weights, adamw.weights / 2);
}

TEST(Verify, GivenInputsAreUsedInEveryStep) {
  const Graph graph = network();
  VerifyOptions options = on_two_ranks(2);
  options.learning_rate = 0;
  options.keep_gradients = options.keep_parameters = true;
  const std::vector<double> of_noise = verify(graph, options).losses;
  EXPECT_NE(of_noise[0], of_noise[1]);
  options.inputs = {at::linspace(-1, 1, 2 * 2 * 6 * 8, at::kDouble).view({2, 2, 6, 8}),
                    at::arange(2 * 6 * 8).remainder(3).view({2, 6, 8})};
  const VerifyReport report = verify(graph, options);
  EXPECT_TRUE(report.ok) << report.worst;
  EXPECT_EQ(report.losses[0], report.losses[1]);

  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, options.seed));
  const ReferenceResult expected =
      run_reference(graph, options.inputs, parameters, options.seed, 0);
  EXPECT_NEAR(report.losses[0], expected.loss, 1e-12);
  for (size_t id = 0; id < parameters.size(); ++id) {
    EXPECT_TRUE(report.gradients[id].allclose(expected.gradients[id], 1e-10, 1e-12));
    EXPECT_TRUE(report.parameters[id].equal(parameters[id])) << "no rate, no change";
  }
}

}  // namespace
}  // namespace tessera::verify_test
