// Residual chains solved by multigrid on slices of layers: every placement has the numbers of the
// same multigrid on one rank, by autograd; and enough V-cycles have the bits of the serial network.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tessera/lower/micro_batch_norm.h"
#include "tessera/lower/multigrid.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/proof/verify.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/differences.h"
#include "tests/ranks/engine/random_chains.h"

namespace tessera::engine_multigrid_test {
namespace {

constexpr uint64_t kNumChains = 100;

TEST(RandomChains, EqualTheOracleOfTheSameSweeps) {
  uint64_t first = 1, last = kNumChains;
  if (const char* seed = std::getenv("TESSERA_SEED"))
    first = last = std::strtoull(seed, nullptr, 10);
  for (uint64_t seed = first; seed <= last; ++seed) {
    const RandomCase random = random_chain_case(seed);
    SCOPED_TRACE(fmt::format("TESSERA_SEED={}: {}", seed, random.description));
    VerifyOptions options;
    options.plan = random.plan;
    options.seed = seed;
    options.recompute = seed % 4 != 0;
    options.clip_norm = seed % 5 == 0 ? 0.1 : 0;
    options.timeout_seconds = 30;
    try {
      const VerifyReport report = verify(random.graph, options);
      EXPECT_TRUE(report.ok) << differences(report);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

VerifyReport two_steps(const Graph& graph, const Plan& plan) {
  VerifyOptions options;
  options.plan = plan;
  options.keep_gradients = options.keep_parameters = true;
  const VerifyReport report = verify(graph, options);
  EXPECT_TRUE(report.ok) << to_string(plan) << ": " << differences(report);
  return report;
}

void expect_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined());
    EXPECT_TRUE(!a[i].defined() || at::equal(a[i], b[i])) << i;
  }
}

struct ChainCase {
  const char* model;
  Shape input;
};
const ChainCase kChains[] = {
    {"resnet_chain1d:width=3,classes=3,blocks=16,norm=none", {2, 1, 33}},
    {"resnet_chain2d:width=3,classes=3,blocks=17,norm=batch", {2, 3, 9, 8}},
    {"resnet_chain2d:width=4,classes=3,blocks=18,norm=group,groups=2", {2, 3, 6, 5}},
    {"resnet_chain3d:width=2,classes=3,blocks=16,norm=instance", {2, 1, 4, 6, 5}},
};

/// Against one rank that knows nothing of multigrid.
TEST(Multigrid, IsTheSerialNetworkToTheBitAfterEnoughIterations) {
  for (const ChainCase& chain : kChains) {
    const Graph graph = build_model(chain.model, chain.input);
    const VerifyReport serial = two_steps(graph, {});
    for (int64_t slices : {2, 3, 4, 8})
      for (int64_t levels : {1, 2, 3}) {
        Plan plan;
        plan.stages.resize(slices);
        plan.multigrid = {.levels = levels, .coarsening = 2, .relaxations = (slices + levels) % 3};
        plan.multigrid->skip = slices == 3;
        plan.multigrid->measure_gradients = slices % 2 == 0;
        plan.multigrid->forward = plan.multigrid->backward = exact_iterations(*plan.multigrid, 18);
        plan.stage_of = assign_layers(graph, *plan.multigrid, static_cast<int>(slices));
        SCOPED_TRACE(fmt::format("{} on {}", chain.model, to_string(plan)));
        const VerifyReport solved = two_steps(graph, plan);
        EXPECT_EQ(solved.losses, serial.losses);
        EXPECT_EQ(solved.residual.value_or(0), 0);
        EXPECT_EQ(solved.gradient_residual.has_value(), levels > 1 && slices % 2 == 0);
        EXPECT_EQ(solved.gradient_residual.value_or(0), 0);
        expect_same_bits(solved.gradients, serial.gradients);
        expect_same_bits(solved.parameters, serial.parameters);
      }
  }
}

/// Slices of layers are cut again in space and over replicas.
TEST(Multigrid, GoesWithGridsAndReplicas) {
  for (const ChainCase& chain : kChains) {
    const Graph graph = build_model(chain.model, chain.input);
    const int num_spatial = static_cast<int>(chain.input.size()) - 2;
    for (int64_t data : {1, 2})
      for (int64_t slices : {1, 2, 3}) {
        Plan plan;
        plan.data = data;
        const std::vector<int64_t> grid(num_spatial, 2);
        if (slices == 1)
          plan.space = grid;
        else
          plan.stages.assign(slices, grid);
        plan.multigrid = {.levels = 3, .coarsening = 2, .forward = 2, .backward = 1};
        plan.multigrid->measure_gradients = true;
        if (slices > 1)
          plan.stage_of = assign_layers(graph, *plan.multigrid, static_cast<int>(slices));
        if (plan.num_ranks() > 16) continue;
        SCOPED_TRACE(chain.model);
        EXPECT_GT(two_steps(graph, plan).gradient_residual.value_or(0), 0);
      }
  }
}

/// A plan may put what is before and after the chain on stages of their own, with other grids.
TEST(Multigrid, GoesWithStagesAroundTheChain) {
  const Graph graph = build_model(kChains[1].model, kChains[1].input);
  Plan plan;
  plan.stages = {{1, 2}, {1, 1}, {1, 1}, {2, 1}};
  plan.multigrid = {.coarsening = 3, .forward = 2, .backward = 2, .relaxations = 0};
  for (const auto& [name, slice] : assign_layers(graph, *plan.multigrid, 2)) {
    const bool is_before = name.starts_with("open");
    plan.stage_of[name] = is_before ? 0 : name.starts_with("step") ? 1 + slice : 3;
  }
  for (int64_t micro_batches : {1, 2}) {
    plan.micro_batches = micro_batches;
    two_steps(with_micro_batch_norm(graph, micro_batches), plan);
  }
}

/// Squeeze and excitation, pools: on grids these exchange more than halos.
TEST(Multigrid, IsTheSerialNetworkWithPoolsInBlocks) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({2, 2, 9, 8}));
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("block{}", i);
    ValueId y =
        i % 2 ? spatial_reduction(graph, x, name + ".squeeze", {})
              : max_pool(graph, x, name + ".pool", {.kernel = {3}, .stride = {1}, .padding = {1}});
    y = convolution(graph, y, name + ".conv", {.out_channels = 2, .kernel = {1}});
    if (i % 2) y = arithmetic(graph, x, y, name + ".excite", Arithmetic::kMultiply);
    x = add(graph, x, y, name + ".add");
  }
  mean_squared_error(graph, x, graph.add_input("target", graph.type(x)), "loss");
  const VerifyReport serial = two_steps(graph, {});
  Plan plan;
  plan.stages = {{}, {}};
  plan.multigrid = {.coarsening = 2, .relaxations = 0};
  plan.multigrid->forward = plan.multigrid->backward = exact_iterations(*plan.multigrid, 8);
  plan.stage_of = assign_layers(graph, *plan.multigrid, 2);
  const VerifyReport solved = two_steps(graph, plan);
  EXPECT_EQ(solved.residual, 0);
  expect_same_bits(solved.gradients, serial.gradients);
  plan.stages = {{2, 2}, {2, 2}};
  two_steps(graph, plan);
}

/// resnet1001_v2 by parts: a chain in each of its three stages, all over the same slices.
TEST(Multigrid, SolvesEveryChainOfANetwork) {
  const Graph graph = build_model("resnet1001_v2:width=2,blocks=6,classes=3", {2, 3, 12, 10});
  Plan plan;
  plan.stages.resize(2);
  plan.multigrid = {.coarsening = 2, .forward = 2};
  plan.stage_of = assign_layers(graph, *plan.multigrid, 2);
  two_steps(graph, plan);
}

}  // namespace
}  // namespace tessera::engine_multigrid_test
