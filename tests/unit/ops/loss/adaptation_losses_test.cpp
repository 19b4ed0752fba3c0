// Losses that push domains apart and pull them together, against autograd and against numbers by
// hand.

#include <cmath>
#include <random>

#include "tessera/base/error.h"
#include "tessera/ops/loss/difference.h"
#include "tessera/ops/loss/domain_cross_entropy.h"
#include "tessera/ops/loss/kernel_mean.h"
#include "tessera/ops/loss/scale_invariant_error.h"
#include "tests/unit/ops/loss/loss_case.h"

namespace tessera::adaptation_losses_test {
namespace {

class AdaptationSeeds : public testing::TestWithParam<uint64_t> {
 protected:
  AdaptationSeeds() : engine(GetParam()) {}

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
  Shape shape(int64_t channels) {
    Shape shape{between(1, 4), channels};
    for (int64_t axes = between(0, 3); axes > 0; --axes) shape.push_back(between(1, 9));
    return shape;
  }
  /// The harness runs step 3: at once, from then on, not yet, and half way.
  StepFunction weight() {
    return std::vector<StepFunction>{1, {0.3, 3}, {0.3, 4}, {2, 0, 10}}[between(0, 3)];
  }

  std::mt19937_64 engine;
};
INSTANTIATE_TEST_SUITE_P(Seeds, AdaptationSeeds, testing::Range<uint64_t>(0, 40));

TEST_P(AdaptationSeeds, DifferenceMatchesItsFormula) {
  Graph graph;
  Shape shape = this->shape(between(1, 5));
  const ValueId a = graph.add_input("a", prediction_type(shape));
  shape[1] = between(1, 5);
  const ValueId b = graph.add_input("b", prediction_type(shape));
  difference_loss(graph, a, b, "loss", {.weight = weight()});
  check_graph_node(graph, GetParam());
}

TEST_P(AdaptationSeeds, DifferenceOfAValueFromItself) {
  Graph graph;
  const ValueId a = graph.add_input("a", prediction_type(shape(3)));
  difference_loss(graph, a, a, "loss");
  check_graph_node(graph, GetParam());
}

TEST_P(AdaptationSeeds, DomainCrossEntropyMatchesPyTorch) {
  Graph graph;
  const int64_t domains = between(2, 5);
  const ValueId x = graph.add_input("x", prediction_type(shape(domains)));
  domain_cross_entropy(graph, x, between(0, domains - 1), "loss", {.weight = weight()});
  check_graph_node(graph, GetParam());
}

TEST_P(AdaptationSeeds, MmdMatchesItsFormula) {
  Graph graph;
  const int64_t features = between(1, 6);
  const ValueId a = graph.add_input("a", prediction_type({between(1, 6), features}));
  const ValueId b = graph.add_input("b", prediction_type({between(1, 6), features}));
  KernelMeanOptions options{.weight = weight()};
  if (between(0, 1) == 1) options.bandwidths = {0.1, 1, 5};
  mmd_loss(graph, a, b, "mmd", options);
  check_graph_node(graph, GetParam());
}

TEST_P(AdaptationSeeds, ScaleInvariantErrorMatchesItsFormula) {
  const ScaleInvariantOptions options{.weight = weight()};
  LossCase(shape(between(1, 4)), Element::kReal, [=](Graph& g, ValueId x, ValueId t) {
    scale_invariant_error(g, x, t, "loss", options);
  }).check(GetParam());
}

/// sum d^2 / k - (sum d)^2 / k^2, image by image: 1 and 3 differ by 1 from their mean, 0 and 0 by
/// 0.
TEST(ScaleInvariantError, HasTheSignAndTheSumsOfItsPaper) {
  LossCase loss({2, 1, 2}, Element::kReal,
                [](Graph& g, ValueId x, ValueId t) { scale_invariant_error(g, x, t, "loss"); });
  loss.prediction = at::tensor({1.0, 3.0, 5.0, 5.0}).to(at::kDouble).view({2, 1, 2});
  loss.target = at::tensor({0.0, 0.0, 5.0, 5.0}).to(at::kDouble).view({2, 1, 2});
  EXPECT_DOUBLE_EQ(loss.run().first, ((1 + 9) / 2.0 - 16 / 4.0 + 0) / 2);
}

/// Every pixel wrong by the same number: nothing to learn.
TEST(ScaleInvariantError, IsZeroForAConstantDifference) {
  LossCase loss({3, 2, 5}, Element::kReal,
                [](Graph& g, ValueId x, ValueId t) { scale_invariant_error(g, x, t, "loss"); });
  loss.prediction = loss.target + 1000;
  const auto [value, gradient] = loss.run();
  EXPECT_LT(value, 1e-20);
  EXPECT_LT(gradient.abs().max().item<double>(), 1e-12);
}

TEST(Difference, IsTheSquareOfTheProducts) {
  Graph graph;
  const ValueId a = graph.add_input("a", prediction_type({2, 1}));
  const ValueId b = graph.add_input("b", prediction_type({2, 2}));
  difference_loss(graph, a, b, "loss");
  ReferenceArgs args;
  args.inputs = {at::tensor({1.0, 2.0}).view({2, 1}),
                 at::tensor({1.0, 0.0, 3.0, -1.0}).view({2, 2})};
  // A^T B = (1 * 1 + 2 * 3, 1 * 0 + 2 * -1) = (7, -2)
  EXPECT_DOUBLE_EQ(graph.node(0).op->reference(args).item<double>(), 49 + 4);
}

TEST(Mmd, OfADomainWithItselfIsZero) {
  Graph graph;
  const ValueId a = graph.add_input("a", prediction_type({5, 3}));
  const ValueId b = graph.add_input("b", prediction_type({5, 3}));
  mmd_loss(graph, a, b, "mmd");
  const at::Tensor code = at::randn({5, 3}, at::kDouble);
  ReferenceArgs args;
  args.inputs = {code, code};
  double sum = 0;
  for (const Node& node : graph.nodes()) sum += node.op->reference(args).item<double>();
  EXPECT_NEAR(sum, 0, 1e-12);
}

TEST(AdaptationLosses, RefuseWhatDoesNotFit) {
  Graph graph;
  const ValueId image = graph.add_input("image", prediction_type({2, 3, 4, 4}));
  const ValueId other = graph.add_input("other", prediction_type({2, 3, 4, 5}));
  const ValueId code = graph.add_input("code", prediction_type({2, 3}));
  EXPECT_THROW(difference_loss(graph, image, other, "loss"), InvalidInput);
  EXPECT_THROW(domain_cross_entropy(graph, code, 3, "loss"), InvalidInput);
  EXPECT_THROW(domain_cross_entropy(graph, code, -1, "loss"), InvalidInput);
  EXPECT_THROW(kernel_mean(graph, image, image, "loss"), InvalidInput);
  EXPECT_THROW(kernel_mean(graph, code, code, "loss", {.bandwidths = {0}}), InvalidInput);
  EXPECT_THROW(kernel_mean(graph, code, code, "loss", {.bandwidths = {}}), InvalidInput);
  EXPECT_THROW(difference_loss(graph, code, code, "loss", {.weight = NAN}), InvalidInput);
  EXPECT_THROW(scale_invariant_error(graph, image, other, "loss"), InvalidInput);
}

}  // namespace
}  // namespace tessera::adaptation_losses_test
