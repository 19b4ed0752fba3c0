// Values of two bytes: what is exact in them stays exact on any placement, and the rest is as near
// to the oracle as their roundings are.

#include <gtest/gtest.h>

#include "tessera/graph/transform.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/proof/verify.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/differences.h"
#include "tests/ranks/engine/random_network.h"
#include "tests/ranks/engine/zoo_families.h"

namespace tessera::bf16_test {
namespace {

/// Whole numbers that come back in the same order.
at::Tensor whole_numbers(const Shape& shape, int64_t count, int64_t least) {
  at::Tensor numbers = at::empty(shape, at::kFloat);
  float* data = numbers.data_ptr<float>();
  for (int64_t i = 0; i < numbers.numel(); ++i)
    data[i] = static_cast<float>(i * i * 7 % 11 % count + least);
  return numbers;
}

/// A kernel of few ones, so that sums stay small.
void give_whole_weights(Graph* graph) {
  for (size_t id = 0; id < graph->parameters().size(); ++id) {
    const Parameter& parameter = graph->parameters()[id];
    const at::Tensor weight = at::zeros(parameter.shape, at::kDouble);
    double* data = weight.data_ptr<double>();
    for (int64_t i = 0; i < weight.numel(); i += 7) data[i] = i % 2 == 0 ? 1 : -1;
    Initial initial;
    initial.kind = Initial::Kind::kGiven;
    initial.given = weight;
    graph->set_initial(static_cast<ParameterId>(id), initial);
  }
}

/// Bits, not bands: halos, gradients that come back and are added, skips and pools.
TEST(Bf16, WholeNumbersAreExactOnAnyPlacement) {
  Graph graph;
  const ConvolutionOptions same{.out_channels = 2, .kernel = {3}, .padding = {1}, .bias = false};
  const ValueId image = graph.add_input("image", ValueType::image({2, 2, 16, 16}));
  ValueId x = relu(graph, convolution(graph, image, "first", same), "relu");
  x = add(graph, x, convolution(graph, x, "second", same), "sum");
  x = max_pool(graph, x, "pool", {.kernel = {2}, .stride = {2}});
  x = convolution(graph, x, "third", same);
  graph.mark_output(x);
  mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
  give_whole_weights(&graph);
  for (const Plan& plan :
       {Plan{1, {}, {}}, Plan{1, {2, 2}, {}}, Plan{2, {1, 3}, {}}, Plan{1, {2, 1}, {2, 2}}}) {
    VerifyOptions options;
    options.plan = plan;
    options.real = at::kBFloat16;
    options.steps = 1;
    options.inputs = {whole_numbers({2, 2, 16, 16}, 3, 0), whole_numbers({2, 2, 8, 8}, 3, -1)};
    const VerifyReport report = verify(graph, options);
    for (double difference : {report.output_rel, report.input_grad_rel, report.param_grad_rel})
      EXPECT_EQ(difference, 0) << to_string(plan) << " " << differences(report);
  }
}

void check(const Graph& graph, const Plan& plan, uint64_t seed, int64_t* undecided) {
  VerifyOptions options;
  options.plan = plan;
  options.real = at::kBFloat16;
  options.seed = seed;
  options.steps = 1;
  const VerifyReport report = verify(graph, options);
  EXPECT_TRUE(report.ok || report.undecided) << report.failure << "; " << differences(report);
  *undecided += report.undecided;
}

/// Every operator runs, and no further from the oracle than its own roundings move it.
TEST(Bf16, RandomNetworksAreNearTheOracle) {
  constexpr int64_t kNumCases = 60;
  int64_t undecided = 0;
  for (uint64_t seed = 1; seed <= kNumCases; ++seed) {
    const RandomCase random = random_case(seed);
    SCOPED_TRACE(random.description);
    check(random.graph, random.plan, seed, &undecided);
  }
  EXPECT_LE(undecided, kNumCases / 4);
}

TEST(Bf16, TheZooIsNearTheOracle) {
  int64_t undecided = 0, count = 0;
  for (const auto& families : {small_models(), published_models()})
    for (const ZooFamily& family : families) {
      SCOPED_TRACE(family.model);
      check(build_model(family.model, family.input), {1, family.grids.front(), {}}, 1, &undecided);
      ++count;
    }
  EXPECT_LE(undecided, count / 4);
}

}  // namespace
}  // namespace tessera::bf16_test
