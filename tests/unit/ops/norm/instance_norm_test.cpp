// Instance normalisation by its own and by running statistics, on random shapes.

#include "tessera/ops/norm/instance_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>

#include "tessera/base/error.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/norm.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::instance_norm_test {
namespace {

using Source = InstanceNormOptions::Statistics;

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine);
}

Graph make(const Shape& shape, const InstanceNormOptions& options) {
  Graph graph;
  instance_norm(graph, graph.add_input("x", ValueType::image(shape)), "in", options);
  return graph;
}

void check(const Shape& shape, const InstanceNormOptions& options, uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}, {}, {}", seed, to_string(shape),
                           options.track_running ? "tracked" : "not tracked"));
  check_graph_node(make(shape, options), seed);
}

class RandomInstanceNorm : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomInstanceNorm, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  Shape shape{between(engine, 1, 4), between(engine, 1, 5)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 2, 9));
  for (bool affine : {true, false})
    for (bool track : {true, false})
      check(shape, {.epsilon = 1e-3, .momentum = 0.3, .affine = affine, .track_running = track},
            GetParam());
}

TEST_P(RandomInstanceNorm, MatchesReferenceByRunningStatistics) {
  std::mt19937_64 engine(GetParam());
  Shape shape{between(engine, 1, 4), between(engine, 1, 5)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 1, 9));
  for (bool affine : {true, false})
    check(shape, {.statistics = Source::kRunning, .epsilon = 1e-3, .affine = affine}, GetParam());
}

/// Samples do not know of each other, so micro-batches change nothing: the oracle has none. Running
/// statistics are the mean over all samples of the batch, once.
TEST_P(RandomInstanceNorm, IsTheSameByMicroBatches) {
  std::mt19937_64 engine(GetParam());
  const int64_t parts = between(engine, 2, 3);
  const Shape shape{between(engine, parts, 7), between(engine, 1, 4), between(engine, 2, 6),
                    between(engine, 1, 4)};
  SCOPED_TRACE(fmt::format("seed {}, {} in {} parts", GetParam(), to_string(shape), parts));
  for (bool affine : {true, false}) {
    const Graph graph = make(shape, {.momentum = 0.3, .affine = affine, .track_running = true});
    EXPECT_EQ(with_batch_parts(*graph.node(0).op, parts), nullptr);
    EXPECT_EQ(graph.node(0).op->batch_parts(), 0);
    check_graph_node(graph, GetParam(), {.micro_batches = parts});
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomInstanceNorm, testing::Range<uint64_t>(0, 12));

TEST(InstanceNorm, CrossesBlocks) {
  check({2, 3, 5000}, {.affine = true}, 1);
  check({2, 2, 9, 30, 31}, {.track_running = true}, 2);
}

/// Every channel is its own group: the weights' sums, which follow those of the instances, are not
/// mixed up.
TEST(InstanceNorm, ManySamplesAndChannels) { check({9, 17, 2, 3}, {.affine = true}, 3); }

/// Where statistics are running ones the operator is batch norm's, and so is its oracle; this asks
/// PyTorch whether that is instance norm.
TEST(InstanceNorm, ByRunningStatisticsIsWhatPyTorchComputes) {
  at::manual_seed(1);
  const at::Tensor x = at::rand({3, 2, 5, 4}, at::kDouble), weight = at::rand({2}, at::kDouble),
                   bias = at::rand({2}, at::kDouble), mean = at::rand({2}, at::kDouble),
                   variance = at::rand({2}, at::kDouble) + 0.5;
  const at::Tensor expected =
      at::instance_norm(x, weight, bias, mean.clone(), variance.clone(), /*use_input_stats=*/false,
                        0.1, 1e-3, /*cudnn_enabled=*/false);
  const InstanceNormOptions used{.statistics = Source::kRunning, .epsilon = 1e-3, .affine = true};
  const InstanceNormOptions tracked{.epsilon = 1e-3, .affine = true, .track_running = true};
  const Graph graph = make({3, 2, 5, 4}, used), training = make({3, 2, 5, 4}, tracked);
  for (const std::shared_ptr<const Op>& op :
       {graph.node(0).op, with_running_statistics(*training.node(0).op)}) {
    ASSERT_NE(op, nullptr);
    const at::Tensor y = op->reference({nullptr, 0, 0, {x}, {weight, bias}, {mean, variance}});
    EXPECT_TRUE(at::allclose(y, expected, 1e-14, 1e-14));
  }
}

/// LibTorch 1.13 mistakes a gradient that lies channels-last for a contiguous one where the batch
/// is one sample; a layer norm after an instance norm gave such gradients, and the oracle was
/// wrong.
TEST(InstanceNorm, OracleReadsGradientsOfAnyLayout) {
  at::AutoGradMode enable_autograd(true);
  at::manual_seed(2);
  const Graph graph = make({1, 3, 8, 5}, {});
  const at::Tensor start = at::rand({1, 3, 8, 5}, at::kDouble);
  const at::Tensor gradient = at::rand({1, 3, 8, 5}, at::kDouble);
  std::vector<at::Tensor> results;
  for (at::MemoryFormat layout : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = start.clone().requires_grad_(true);
    const at::Tensor y = graph.node(0).op->reference({nullptr, 0, 0, {x}, {}, {}});
    y.backward(gradient.contiguous(layout));
    results.push_back(x.grad());
  }
  EXPECT_TRUE(at::allclose(results[0], results[1], 1e-12, 1e-14));
}

TEST(InstanceNorm, StaysAsItIsWhereNothingIsTracked) {
  EXPECT_EQ(with_running_statistics(*make({1, 2, 4}, {}).node(0).op), nullptr);
}

TEST(InstanceNorm, NamesParametersAsPyTorch) {
  const auto names = [](const InstanceNormOptions& options) {
    const Graph graph = make({1, 2, 4}, options);
    std::vector<std::string> result;
    for (const Parameter& parameter : graph.parameters()) result.push_back(parameter.name);
    return result;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names({}), Names{});
  EXPECT_EQ(names({.affine = true}), (Names{"in.weight", "in.bias"}));
  EXPECT_EQ(names({.track_running = true}), (Names{"in.running_mean", "in.running_var"}));
  EXPECT_EQ(names({.statistics = Source::kRunning}), (Names{"in.running_mean", "in.running_var"}));
}

TEST(InstanceNorm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(make({4, 3, 1, 1}, {}), InvalidInput);
  EXPECT_NO_THROW(make({4, 3, 1, 1}, {.statistics = Source::kRunning}));
  EXPECT_THROW(make({4, 3, 2}, {.epsilon = -1e-5}), InvalidInput);
  EXPECT_THROW(make({4, 3, 2}, {.momentum = 1.5}), InvalidInput);
  Graph graph;
  const ValueType vectors{{{AxisKind::kBatch, 6, -1, {}}, {AxisKind::kChannel, 5, -1, {}}}};
  const ValueId x = graph.add_input("x", vectors);
  EXPECT_THROW(instance_norm(graph, x, "in"), InvalidInput);
}

}  // namespace
}  // namespace tessera::instance_norm_test
