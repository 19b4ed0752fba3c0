// Multigrid over layers as a graph, run by autograd on whole tensors: which chains are found, what
// becomes of them, and that enough V-cycles give the bits of the serial network.

#include "tessera/lower/multigrid.h"

#include <gtest/gtest.h>

#include "tessera/data/noise.h"
#include "tessera/graph/reference.h"
#include "tessera/graph/transform.h"
#include "tessera/lower/chunks.h"
#include "tessera/lower/residual_chains.h"
#include "tessera/ops/chain/chain_arithmetic.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/max_unpool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::multigrid_test {
namespace {

struct Step {
  ReferenceResult result;
  std::vector<at::Tensor> parameters;  // running statistics are new
};

Step step_of(const Graph& graph, uint64_t seed = 3) {
  Step step;
  std::vector<at::Tensor> inputs;
  for (ValueId input : graph.inputs()) {
    const Shape shape = graph.type(input).shape();
    const bool is_real = graph.type(input).element == Element::kReal;
    inputs.push_back(at::empty(shape, is_real ? at::kDouble : at::kLong));
    load_noise(graph, input, seed, 0, Box::whole(shape), inputs.back());
  }
  for (const Parameter& parameter : graph.parameters())
    step.parameters.push_back(initial_value(parameter, seed).contiguous().clone());
  step.result = run_reference(graph, inputs, step.parameters, seed, 0);
  return step;
}

void expect_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined());
    EXPECT_TRUE(!a[i].defined() || at::equal(a[i], b[i])) << i;
  }
}

void expect_same_bits(const Step& a, const Step& b) {
  EXPECT_EQ(a.result.loss, b.result.loss);
  expect_same_bits(a.result.outputs, b.result.outputs);
  expect_same_bits(a.result.input_gradients, b.result.input_gradients);
  expect_same_bits(a.result.gradients, b.result.gradients);
  expect_same_bits(a.parameters, b.parameters);
}

/// |gradient - serial gradient| / |serial gradient| over all parameters.
double gradient_error(const Step& step, const Step& serial) {
  double error = 0, scale = 0;
  for (size_t i = 0; i < serial.result.gradients.size(); ++i)
    if (const at::Tensor& right = serial.result.gradients[i]; right.defined()) {
      error += (step.result.gradients[i] - right).square().sum().item<double>();
      scale += right.square().sum().item<double>();
    }
  return std::sqrt(error / scale);
}

struct ChainCase {
  const char* model;
  Shape input;
  int64_t blocks;
};
const ChainCase kChains[] = {
    {"resnet_chain1d:width=3,classes=3,blocks=12,norm=none", {2, 1, 17}, 12},
    {"resnet_chain2d:width=3,classes=3,blocks=11,norm=batch", {2, 3, 7, 6}, 11},
    {"resnet_chain2d:width=4,classes=3,blocks=9,norm=group,groups=2", {2, 3, 6, 5}, 9},
    {"resnet_chain3d:width=2,classes=3,blocks=10,norm=instance", {2, 1, 4, 3, 5}, 10},
};

TEST(Multigrid, IsTheSerialNetworkAfterEnoughIterations) {
  for (const ChainCase& chain : kChains) {
    const Graph graph = build_model(chain.model, chain.input);
    const Step serial = step_of(graph);
    for (int64_t levels : {1, 2, 3})
      for (int64_t relaxations : {0, 1, 2})
        for (bool skip : {false, true}) {
          Multigrid multigrid{
              .levels = levels, .coarsening = 2, .relaxations = relaxations, .skip = skip};
          multigrid.forward = multigrid.backward = exact_iterations(multigrid, chain.blocks);
          SCOPED_TRACE(std::string(chain.model) + " by " + to_string(multigrid));
          expect_same_bits(step_of(with_multigrid(graph, multigrid)), serial);
        }
  }
}

/// Corrections that are computed and are zero, to the bit: the list of operations alone does not
/// show it where V-cycles end one short of the bound, but the states that are exact stay so.
TEST(Multigrid, KeepsWhatIsExact) {
  const Graph graph = build_model("resnet_chain2d:width=3,blocks=16,norm=none", {1, 3, 6, 5});
  for (int64_t levels : {2, 3}) {
    const Multigrid multigrid{.levels = levels, .coarsening = 4, .forward = 1, .backward = 1};
    const Graph solved = with_multigrid(graph, multigrid);
    EXPECT_GT(gradient_error(step_of(solved), step_of(graph)), 0);
  }
}

TEST(Multigrid, ComesNearerWithEachIteration) {
  for (const char* norm : {"none", "batch"})
    for (int64_t levels : {2, 3}) {
      const Graph graph = build_model(
          std::string("resnet_chain2d:width=4,blocks=32,classes=4,norm=") + norm, {2, 3, 8, 8});
      const Step serial = step_of(graph);
      double before = 0.5;
      for (int64_t iterations : {1, 2, 3}) {
        const Multigrid multigrid{
            .levels = levels, .coarsening = 4, .forward = iterations, .backward = iterations};
        const double error = gradient_error(step_of(with_multigrid(graph, multigrid)), serial);
        EXPECT_LT(error, 0.7 * before) << to_string(multigrid) << " " << norm;
        EXPECT_GT(error, 0) << to_string(multigrid) << " " << norm;
        before = error;
      }
    }
}

TEST(Multigrid, DropsInEverySweepWhatTheLayerDrops) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({2, 3, 5, 4}));
  for (int i = 0; i < 8; ++i) {
    const std::string name = "block" + std::to_string(i);
    ValueId y =
        convolution(graph, x, name + ".conv", {.out_channels = 3, .kernel = {3}, .padding = {1}});
    y = dropout(graph, y, name + ".drop", {.probability = 0.4});
    x = i % 2 ? add(graph, x, y, name + ".add") : add(graph, y, x, name + ".add");
  }
  graph.mark_output(x);
  Multigrid multigrid{.coarsening = 2, .forward = 2};
  multigrid.forward = exact_iterations(multigrid, 8);
  expect_same_bits(step_of(with_multigrid(graph, multigrid)), step_of(graph));
}

TEST(ResidualChains, AreFoundWhereBlocksFollowEachOther) {
  EXPECT_EQ(residual_chains(build_model("resnet_chain2d:blocks=5", {1, 3, 8, 8})).size(), 1u);
  const auto of_stages =
      residual_chains(build_model("resnet110_v2:width=2,blocks=6", {1, 3, 16, 16}));
  ASSERT_EQ(of_stages.size(), 3u);  // where the size changes, the shortcut is a convolution
  EXPECT_EQ(of_stages[0].size(), 6u);
  EXPECT_EQ(of_stages[1].size(), 5u);
  // ReLU after the sum: no state goes from block to block unchanged.
  EXPECT_TRUE(residual_chains(build_model("resnet18:width=2", {2, 3, 64, 64})).empty());
}

/// x0 ── block ── x1 ── block ── x2 ...; `change` makes one block different.
Graph chain_of_convolutions(int blocks,
                            const std::function<void(Graph&, int, ValueId*, ValueId*)>& change) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 2, 5, 5}));
  for (int i = 0; i < blocks; ++i) {
    const std::string name = "block" + std::to_string(i);
    ValueId y =
        convolution(graph, x, name + ".conv", {.out_channels = 2, .kernel = {3}, .padding = {1}});
    change(graph, i, &x, &y);
    x = add(graph, x, y, name + ".add");
  }
  graph.mark_output(x);
  return graph;
}

TEST(ResidualChains, EndWhereSomebodyElseReadsAState) {
  const Graph graph = chain_of_convolutions(6, [](Graph& graph, int i, ValueId* x, ValueId*) {
    if (i == 3) graph.mark_output(relu(graph, *x, "side"));
  });
  const auto chains = residual_chains(graph);
  ASSERT_EQ(chains.size(), 2u);
  EXPECT_EQ(chains[0].size(), 3u);
  EXPECT_EQ(chains[1].size(), 3u);
}

TEST(ResidualChains, DoWithoutBlocksThatHaveNoSweeps) {
  const Graph graph = chain_of_convolutions(4, [](Graph& graph, int i, ValueId*, ValueId* y) {
    const PoolOptions pool{.kernel = {3}, .stride = {2}};
    if (i == 1) *y = max_unpool(graph, max_pool(graph, *y, "pool", pool), *y, "unpool", pool);
  });
  EXPECT_EQ(residual_chains(graph).size(), 1u);
  EXPECT_EQ(residual_chains(graph)[0].size(), 2u);
  ASSERT_EQ(sums_without_blocks(graph).size(), 1u);
  EXPECT_NE(sums_without_blocks(graph)[0].find("unpool"), std::string::npos);
}

/// Squeeze and excitation, and a pool of as many pixels.
Graph chain_with_pools(int blocks) {
  Graph graph = chain_of_convolutions(blocks, [](Graph& graph, int i, ValueId*, ValueId* y) {
    const std::string name = "block" + std::to_string(i);
    if (i % 2)
      *y = arithmetic(graph, *y, spatial_reduction(graph, *y, name + ".squeeze", {}),
                      name + ".excite", Arithmetic::kMultiply);
    else
      *y = max_pool(graph, *y, name + ".pool", {.kernel = {3}, .stride = {1}, .padding = {1}});
  });
  const ValueId last = graph.outputs()[0];
  mean_squared_error(graph, last, graph.add_input("target", graph.type(last)), "loss");
  return graph;
}

/// Steps of their own size, so that the first V-cycles need not come nearer one after the other.
TEST(Multigrid, SolvesBlocksWithPools) {
  const Graph graph = chain_with_pools(8);
  const Step serial = step_of(graph);
  for (int64_t iterations : {1, 2, 3}) {
    const Multigrid multigrid{
        .coarsening = 2, .forward = iterations, .backward = iterations, .relaxations = 0};
    const double error = gradient_error(step_of(with_multigrid(graph, multigrid)), serial);
    EXPECT_EQ(error == 0, iterations == 3) << iterations;
    EXPECT_LT(error, 0.5);
  }
}

/// They become smaller, and are none where the states are those of the network, to the bit.
TEST(Multigrid, MeasuresTheJumpsThatItLeaves) {
  const Graph graph = build_model("resnet_chain2d:width=3,blocks=16,norm=batch", {2, 3, 7, 6});
  EXPECT_FALSE(solve_residual(step_of(graph).result.measured));
  double before = 1;
  for (int64_t iterations : {1, 2, 3, 7}) {
    const Multigrid multigrid{.coarsening = 2, .forward = iterations, .relaxations = 0};
    const auto residual = solve_residual(step_of(with_multigrid(graph, multigrid)).result.measured);
    ASSERT_TRUE(residual);
    EXPECT_LT(*residual, before);
    EXPECT_EQ(*residual == 0, iterations == 7);
    before = *residual;
  }
}

/// The same of the gradients; measuring changes no bit of anything.
TEST(Multigrid, MeasuresTheJumpsOfGradients) {
  for (const ChainCase& chain : kChains) {
    const Graph graph = build_model(chain.model, chain.input);
    double before = 1;
    for (int64_t iterations : {1, 2, 3, 6}) {
      Multigrid multigrid{.coarsening = 2, .forward = 6, .backward = iterations, .relaxations = 0};
      const Step plain = step_of(with_multigrid(graph, multigrid));
      EXPECT_FALSE(solve_gradient_residual(plain.result.measured));
      multigrid.measure_gradients = true;
      const Step step = step_of(with_multigrid(graph, multigrid));
      SCOPED_TRACE(std::string(chain.model) + " by " + to_string(multigrid));
      expect_same_bits(step, plain);
      EXPECT_EQ(solve_residual(step.result.measured), 0);
      const auto residual = solve_gradient_residual(step.result.measured);
      ASSERT_TRUE(residual);
      EXPECT_LT(*residual, before);
      EXPECT_EQ(*residual == 0, iterations == 6);
      before = *residual;
    }
  }
}

TEST(Multigrid, RefusesNetworksWithoutChains) {
  const Graph graph = build_model("resnet18:width=2", {2, 3, 64, 64});
  expect_refusal([&] { with_multigrid(graph, {}); }, "no residual chain of more than 4 blocks");
  const Graph short_chain = build_model("resnet_chain2d:blocks=4", {1, 3, 8, 8});
  expect_refusal([&] { with_multigrid(short_chain, {}); }, "its longest has 4");
}

TEST(Multigrid, CutsLayersIntoSlicesOfWholeIntervals) {
  const Graph graph = build_model("resnet_chain2d:blocks=10", {1, 3, 8, 8});
  const auto slices = assign_layers(graph, {.coarsening = 4}, 2);
  EXPECT_EQ(slices.at("open.conv"), 0);
  EXPECT_EQ(slices.at("step4.add"), 0);
  EXPECT_EQ(slices.at("step5.conv"), 1);
  EXPECT_EQ(slices.at("head"), 1);
  expect_refusal([&] { assign_layers(graph, {.coarsening = 4}, 4); }, "use at most 3");
}

/// Nothing on a slice waits for a slice after it: states go up, and gradients down, in one go.
TEST(Multigrid, LetsEverySliceRunInOneGo) {
  const Graph graph = build_model("resnet_chain2d:blocks=32", {1, 3, 8, 8});
  for (int64_t levels : {2, 3, 4})
    for (int slices : {2, 3, 8}) {
      Plan plan;
      plan.stages.resize(slices);
      plan.multigrid = {.levels = levels, .coarsening = 2, .forward = 2, .backward = 2};
      plan.multigrid->measure_gradients = slices != 3;
      plan.stage_of = assign_layers(graph, *plan.multigrid, slices);
      const Graph solved = solve_by_multigrid(graph, plan);
      EXPECT_EQ(std::ssize(make_chunks(solved, stages_of_nodes(solved, plan))), slices)
          << to_string(*plan.multigrid);
    }
}

}  // namespace
}  // namespace tessera::multigrid_test
