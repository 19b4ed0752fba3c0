// Weights that are computed from others, in the oracle and in the program of one rank.

#include "tessera/graph/derivation.h"

#include <gtest/gtest.h>

#include "tessera/graph/graph.h"
#include "tessera/graph/reference.h"
#include "tessera/graph/transform.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tests/unit/refusal.h"

namespace tessera::derivation_test {
namespace {

using F = WeightFunction;

at::Tensor numbers(at::IntArrayRef shape) {
  at::manual_seed(static_cast<uint64_t>(shape.size()) + 3);
  return at::rand(shape, at::kDouble) + 0.5;
}

at::Tensor of(F function, const std::vector<at::Tensor>& operands,
              const std::vector<int64_t>& numbers = {}, const std::vector<double>& factors = {}) {
  return apply_step({function, {}, numbers, factors}, operands);
}

TEST(Derivation, FunctionsArePyTorchs) {
  const at::Tensor w = numbers({4, 3, 2}), m = numbers({4, 3}), v = numbers({3});
  EXPECT_TRUE(at::equal(of(F::kVariance, {w}, {1, 0, 1, 2}), w.var({1, 2}, false, true)));
  EXPECT_TRUE(at::equal(of(F::kDeviation, {w}, {0, 1, 0}), w.std({0}, true, false)));
  EXPECT_TRUE(at::equal(of(F::kMean, {w}, {1}), w.mean({0, 1, 2}, true)));
  EXPECT_TRUE(at::equal(of(F::kNorm, {w}, {0, 1}, {2}), w.norm(2, {1})));
  EXPECT_TRUE(at::equal(of(F::kMatmul, {m, v}), m.mv(v)));
  EXPECT_TRUE(at::equal(of(F::kMatmul, {v, v}), v.dot(v)));
  EXPECT_TRUE(at::equal(of(F::kPermute, {m}, {1, 0}), m.t()));
  EXPECT_TRUE(at::equal(of(F::kClamp, {w}, {}, {0.7, 1}), w.clamp(0.7, 1)));
  EXPECT_TRUE(at::equal(of(F::kAffine, {w}, {}, {2, -1}), w * 2 - 1));
  EXPECT_TRUE(at::equal(of(F::kWeightNorm, {w, numbers({4, 1, 1})}, {0}),
                        at::_weight_norm(w, numbers({4, 1, 1}), 0)));
  EXPECT_TRUE(at::equal(of(F::kRelu, {w - 1}), (w - 1).relu()));
  EXPECT_TRUE(at::equal(of(F::kSlice, {w}, {1, 0, 3, 2}), w.slice(1, 0, 3, 2)));
  EXPECT_TRUE(at::equal(of(F::kTake, {m}, {1, 2, 0, 2, 2}),
                        m.index({at::indexing::Slice(), at::tensor({2, 0, 2, 2}, at::kLong)})));
  EXPECT_TRUE(at::equal(of(F::kConcat, {m, m, m * 2}, {0}), at::cat({m, m, m * 2}, 0)));
}

TEST(Derivation, WhatDoesNotFitIsRefused) {
  const at::Tensor m = numbers({4, 3});
  expect_refusal([&] { of(F::kAdd, {m, numbers({5})}); }, "a computed weight");
  expect_refusal([&] { of(F::kMatmul, {m, numbers({2, 2, 2})}); }, "vectors and matrices");
  expect_refusal([&] { of(F::kReshape, {m}, {5}); }, "a computed weight");
  expect_refusal([&] { of(F::kTake, {m}, {0, 4}); }, "a computed weight");
  expect_refusal([&] { of(F::kTake, {m}, {2, 0}); }, "axis 2 of a weight with 2 axes");
  expect_refusal([&] { of(F::kSlice, {m}, {0, 1}); }, "lacks a number");
  expect_refusal([&] { of(F::kConcat, {m, numbers({4, 2})}, {0}); }, "a computed weight");
}

/// A buffer moves in a step that trains, and what is computed from it has no gradient through it.
TEST(Derivation, UpdatesBuffersWhereTheStepTrains) {
  const Derivation derivation{
      2, {0, 1}, {{F::kAffine, {1}, {}, {0.5, 1}}, {F::kUpdate, {2}, {1}}, {F::kMultiply, {0, 3}}}};
  const at::Tensor w = at::full({}, 3.0, at::kDouble), b = at::full({}, 4.0, at::kDouble);
  const Derived trained = derive(derivation, {w, b}, DerivationMode::kTrain);
  EXPECT_EQ(trained.result.item<double>(), 9);
  ASSERT_EQ(trained.updates.size(), 1u);
  EXPECT_EQ(trained.updates[0].first, 1);
  EXPECT_EQ(trained.updates[0].second.item<double>(), 3);
  const Derived evaluated = derive(derivation, {w, b}, DerivationMode::kEvaluate);
  EXPECT_EQ(evaluated.result.item<double>(), 12);
  EXPECT_TRUE(evaluated.updates.empty());
}

Graph graph_with_norm() {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 1, 3}));
  graph.add_parameter({"v", {1, 1, 1}, ParameterRole::kTrainable, {Initial::Kind::kConstant, 2}});
  Parameter weight{"conv.weight", {1, 1, 1}, ParameterRole::kDerived, {}};
  weight.persistent = false;
  graph.add_parameter(weight);
  graph.add_derivation({1, {0}, {{F::kMultiply, {0, 0}}}});
  ConvolutionOptions options{1, {1}};
  options.bias = false;
  graph.mark_output(convolution(graph, x, "conv", options));
  return graph;
}

TEST(Derivation, TheOracleDifferentiatesThroughIt) {
  Graph graph = graph_with_norm();
  const ValueId output = graph.outputs()[0];
  const ValueId target = graph.add_input("t", graph.type(output));
  mean_squared_error(graph, output, target, "loss");
  std::vector<at::Tensor> parameters{at::full({1, 1, 1}, 2.0, at::kDouble),
                                     at::zeros({1, 1, 1}, at::kDouble)};
  const at::Tensor x = at::ones({1, 1, 3}, at::kDouble);
  const ReferenceResult result = run_reference(graph, {x, at::zeros_like(x)}, parameters, 1, 0);
  EXPECT_EQ(result.outputs[0][0][0][0].item<double>(), 4);
  EXPECT_EQ(parameters[1].item<double>(), 4) << "the derived weight is kept";
  EXPECT_EQ(result.gradients[0].item<double>(), 2 * 4 * 2 * 2) << "d (v^2)^2 / dv = 4 v^3";
  EXPECT_FALSE(result.gradients[1].defined());
}

TEST(Derivation, PruningFreezesTheSourcesOfUnreadWeights) {
  const Graph read = prune(graph_with_norm(), Losses::kDrop);
  EXPECT_EQ(read.derivations().size(), 1u);
  EXPECT_EQ(read.parameters()[0].role, ParameterRole::kTrainable);
  Graph unread;
  const ValueId x = unread.add_input("x", ValueType::image({1, 1, 3}));
  unread.mark_output(convolution(unread, x, "other", {1, {1}}));
  const ParameterId v = unread.add_parameter({"v", {2}, ParameterRole::kTrainable, {}});
  const ParameterId d = unread.add_parameter({"d", {2}, ParameterRole::kDerived, {}});
  unread.add_derivation({d, {v}, {{F::kNegate, {0}}}});
  const Graph pruned = prune(unread, Losses::kDrop);
  EXPECT_TRUE(pruned.derivations().empty());
  EXPECT_EQ(pruned.parameters()[v].role, ParameterRole::kFrozen);
}

}  // namespace
}  // namespace tessera::derivation_test
