// The cost model by numbers that can be checked on paper, and what a lowering makes of it.

#include "tessera/lower/cost_model.h"

#include <gtest/gtest.h>

#include "tessera/lower/rewrite.h"
#include "tessera/lower/task_costs.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"

namespace tessera::cost_model_test {
namespace {

constexpr Phase kAllPhases[] = {Phase::kForward,
                                Phase::kRecompute,
                                Phase::kPieceStatistics,
                                Phase::kMergeStatistics,
                                Phase::kUpdateBuffers,
                                Phase::kPieceGradStatistics,
                                Phase::kCombineGradStatistics,
                                Phase::kInputGradient,
                                Phase::kWeightGradient};

/// A 3x3 convolution from 2 channels to 3 on 4 x 4 pixels.
Graph one_convolution() {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 4, 4}));
  convolution(graph, x, "conv", {.out_channels = 3, .kernel = {3}, .padding = {1}, .bias = false});
  return graph;
}

const Box kAll{{0, 1}, {0, 3}, {0, 4}, {0, 4}};
const Box kUpperHalf{{0, 1}, {0, 3}, {0, 2}, {0, 4}};

TEST(UnitCosts, CountTasksAlone) {
  const UnitCosts costs;
  const Graph graph = one_convolution();
  for (TaskKind kind : {TaskKind::kForward, TaskKind::kBackward, TaskKind::kWeight})
    EXPECT_EQ(costs.task(kind), 1);
  for (Phase phase : kAllPhases) EXPECT_EQ(costs.kernel(graph.node(0), phase, kAll), 0);
  EXPECT_EQ(costs.message(1 << 30), 0);
  EXPECT_EQ(costs.unit(), TimeUnit::kTasks);
}

/// 48 outputs of 18 products and sums each.
TEST(Roofline, AKernelTakesItsOperations) {
  const Roofline costs({.flops_per_second = 1000, .memory_bytes_per_second = 1e12});
  const Graph graph = one_convolution();
  for (Phase phase :
       {Phase::kForward, Phase::kRecompute, Phase::kInputGradient, Phase::kWeightGradient})
    EXPECT_DOUBLE_EQ(costs.kernel(graph.node(0), phase, kAll), 48 * 18 * 2 / 1000.0);
  EXPECT_DOUBLE_EQ(costs.kernel(graph.node(0), Phase::kForward, kUpperHalf), 24 * 18 * 2 / 1000.0);
  for (Phase phase : {Phase::kPieceStatistics, Phase::kPieceGradStatistics})
    EXPECT_DOUBLE_EQ(costs.kernel(graph.node(0), phase, kAll), 48 / 1000.0);
  for (Phase phase :
       {Phase::kMergeStatistics, Phase::kCombineGradStatistics, Phase::kUpdateBuffers})
    EXPECT_EQ(costs.kernel(graph.node(0), phase, kAll), 0);
  for (TaskKind kind : {TaskKind::kForward, TaskKind::kBackward, TaskKind::kWeight})
    EXPECT_EQ(costs.task(kind), 0);
  EXPECT_EQ(costs.unit(), TimeUnit::kSeconds);
}

/// It reads 2 x 4 x 4 numbers and 3 x 2 x 3 x 3 weights and writes 3 x 4 x 4; for the upper half it
/// reads three rows of four, not the padding.
TEST(Roofline, OrItsTrafficWithMemory) {
  const RooflineRates rates{.flops_per_second = 1e12, .memory_bytes_per_second = 1000};
  const Graph graph = one_convolution();
  const Roofline single(rates), twice(rates, at::kDouble);
  EXPECT_DOUBLE_EQ(single.kernel(graph.node(0), Phase::kForward, kAll),
                   (32 + 48 + 54) * 4 / 1000.0);
  EXPECT_DOUBLE_EQ(single.kernel(graph.node(0), Phase::kForward, kUpperHalf),
                   (24 + 24 + 54) * 4 / 1000.0);
  EXPECT_DOUBLE_EQ(single.kernel(graph.node(0), Phase::kPieceStatistics, kAll), 48 * 4 / 1000.0);
  EXPECT_DOUBLE_EQ(twice.kernel(graph.node(0), Phase::kForward, kAll), (32 + 48 + 54) * 8 / 1000.0);
}

/// The longer of the two decides, kernel by kernel: at these rates a convolution waits for its
/// operations and a ReLU for memory.
TEST(Roofline, TheLongerOfTheTwoDecides) {
  Graph graph = one_convolution();
  relu(graph, graph.node(0).output, "relu");
  const Roofline costs({.flops_per_second = 1000, .memory_bytes_per_second = 1000});
  EXPECT_DOUBLE_EQ(costs.kernel(graph.node(0), Phase::kForward, kAll), 48 * 18 * 2 / 1000.0);
  EXPECT_DOUBLE_EQ(costs.kernel(graph.node(1), Phase::kForward, kAll), (48 + 48) * 4 / 1000.0);
}

TEST(Roofline, AMessageTakesLatencyAndBytesOverBandwidth) {
  EXPECT_EQ(Roofline().message(1 << 30), 0);
  const Roofline costs({.message_latency_seconds = 0.5, .message_bytes_per_second = 100});
  EXPECT_DOUBLE_EQ(costs.message(0), 0.5);
  EXPECT_DOUBLE_EQ(costs.message(25), 0.75);
}

/// What touches no pixels costs nothing.
TEST(Roofline, GradientsOfANormsWeightsComeWithItsStatistics) {
  Graph graph = one_convolution();
  batch_norm(graph, graph.node(0).output, "norm");
  EXPECT_EQ(Roofline().kernel(graph.node(1), Phase::kWeightGradient, kAll), 0);
  EXPECT_GT(Roofline().kernel(graph.node(1), Phase::kInputGradient, kAll), 0);
}

/// Elements of the output, with a power of ten for each phase that shows which kernels were
/// counted.
class Elements final : public CostModel {
 public:
  Elements() : CostModel(at::kFloat) {}
  TimeUnit unit() const override { return TimeUnit::kTasks; }
  double task(TaskKind kind) const override { return 0.1 * (1 + static_cast<int>(kind)); }
  double kernel(const Node&, Phase phase, const Box& out) const override {
    return factor(phase) * static_cast<double>(out.volume());
  }
  double message(int64_t) const override { return 0; }

 private:
  static double factor(Phase phase) {
    switch (phase) {
      case Phase::kForward:
        return 1;
      case Phase::kPieceStatistics:
        return 10;
      case Phase::kRecompute:
        return 100;
      case Phase::kPieceGradStatistics:
        return 1e3;
      case Phase::kInputGradient:
        return 1e4;
      case Phase::kWeightGradient:
        return 1e5;
      default:
        return 1e9;
    }
  }
};

/// On stage 0 a convolution, a norm and its ReLU, on stage 1 a convolution and the loss; values of
/// 2 channels and `rows` x 4 pixels.
struct TwoStages {
  explicit TwoStages(int64_t rows) {
    ValueId x = graph.add_input("image", ValueType::image({2, 2, rows, 4}));
    x = convolution(graph, x, "conv1", {.out_channels = 2, .kernel = {1}, .bias = false});
    x = relu(graph, batch_norm(graph, x, "norm", {.batch_parts = 2}), "relu");
    x = convolution(graph, x, "conv2", {.out_channels = 2, .kernel = {1}, .bias = false});
    mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
    plan.stages = {{}, {}};
    plan.stage_of = {{"conv1", 0}, {"norm", 0}, {"relu", 0}, {"conv2", 1}, {"loss", 1}};
    plan.micro_batches = 2;
  }
  std::vector<TaskCosts> costs(const CostModel& model) const {
    const PlacedGraph placed = place(rewrite(graph, plan), plan);
    return chunk_costs(model, placed, analyse_backward(placed.graph, {}));
  }
  Graph graph;
  Plan plan;
};

/// The first convolution passes no gradient on; the norm's output is computed again, and its
/// weights need statistics alone, so their gradients are not put off.
TEST(TaskCosts, AreThoseOfTheKernelsOfAMicroBatch) {
  const std::vector<TaskCosts> costs = TwoStages(4).costs(Elements());
  ASSERT_EQ(costs.size(), 2u);
  EXPECT_NEAR(costs[0].forward, 0.1 + 32 * (1 + 1 + 10), 1e-6);
  EXPECT_NEAR(costs[0].backward, 0.2 + 32 * (1e5 + 1e4 + 1e3 + 100), 1e-6);
  EXPECT_NEAR(costs[0].weight, 0.3 + 32 * 1e5, 1e-6);
}

TEST(TaskCosts, AreThoseOfTheRankWithTheLargestPiece) {
  TwoStages cut(5);
  cut.plan.stages = {{2, 1}, {}};
  TwoStages largest(3);
  const std::vector<TaskCosts> costs = cut.costs(Elements());
  EXPECT_NEAR(costs[0].forward, largest.costs(Elements())[0].forward, 1e-6);
  EXPECT_NEAR(costs[0].backward, largest.costs(Elements())[0].backward, 1e-6);
  EXPECT_NEAR(costs[0].weight, largest.costs(Elements())[0].weight, 1e-6);
  EXPECT_NEAR(costs[1].forward, TwoStages(5).costs(Elements())[1].forward, 1e-6);
}

TEST(TaskCosts, AreUnitsByDefault) {
  for (const TaskCosts& costs : TwoStages(4).costs(*make_cost_model(Plan().schedule_costs))) {
    EXPECT_EQ(costs.forward, 1);
    EXPECT_EQ(costs.backward, 1);
    EXPECT_EQ(costs.weight, 1);
  }
}

}  // namespace
}  // namespace tessera::cost_model_test
