// Ranks of one class hold and send alike: one program tells about all.

#include "tessera/lower/rank_classes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/lower/lower.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/simulate/simulator.h"
#include "tessera/zoo/zoo.h"

namespace tessera::rank_classes_test {
namespace {

/// What the program of a class's first rank says about each of its members is what that one's own
/// says.
size_t expect_exact(const Graph& graph, const Plan& plan, const LowerOptions& options = {}) {
  SCOPED_TRACE(to_string(plan));
  const Lowering lowering(graph, plan, options);
  const auto classes = rank_classes(lowering.step());
  std::vector<int> seen;
  for (const std::vector<int>& alike : classes) {
    EXPECT_TRUE(std::is_sorted(alike.begin(), alike.end()));
    seen.insert(seen.end(), alike.begin(), alike.end());
    const Program first = lowering.program(alike.front());
    const RankForecast of_first = simulate(first, at::kFloat);
    for (int rank : alike) {
      SCOPED_TRACE(rank);
      const RankForecast told = simulate_as(rank, first, of_first, at::kFloat);
      const RankForecast own = simulate(lowering.program(rank), at::kFloat);
      EXPECT_EQ(told.peak_value_bytes, own.peak_value_bytes);
      EXPECT_EQ(told.reduction_bytes, own.reduction_bytes);
      EXPECT_EQ(told.parameter_bytes, own.parameter_bytes);
      EXPECT_EQ(told.messages, own.messages);
      EXPECT_EQ(told.bytes_sent, own.bytes_sent);
    }
  }
  std::sort(seen.begin(), seen.end());
  for (int rank = 0; rank < plan.num_ranks(); ++rank) EXPECT_EQ(seen.at(rank), rank);
  EXPECT_EQ(std::ssize(seen), plan.num_ranks());
  return classes.size();
}

TEST(RankClasses, AnEvenGridHasCornersEdgesAndAnInterior) {
  const Graph graph = build_model("cnn2d:base=2,depth=2", {1, 3, 64, 64});
  EXPECT_EQ(expect_exact(graph, {1, {8, 8}, {}}, {.step = StepKind::kTrain}), 9u);
  EXPECT_EQ(expect_exact(graph, {1, {4, 1}, {}}), 3u);
}

TEST(RankClasses, UnevenPartsAreTheirOwn) {
  const Graph graph = build_model("unet2d:base=2,depth=3", {1, 3, 100, 90});
  EXPECT_GT(expect_exact(graph, {1, {6, 5}, {}}), 9u);
  const Graph flat = build_model("cnn2d:base=2,depth=2,norm=none", {2, 3, 50, 41});
  expect_exact(flat, {2, {3, 5}, {2, 1}}, {.step = StepKind::kTrain});
}

TEST(RankClasses, StagesAndHeadsAreDifferent) {
  const Graph graph =
      with_micro_batch_norm(build_model("unet2d:base=2,depth=2", {4, 3, 16, 16}), 2);
  Plan plan;
  plan.stages = {{2, 2}, {2, 2}};
  plan.micro_batches = 2;
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    plan.stage_of[graph.nodes()[id].name] = id < graph.nodes().size() / 2 ? 0 : 1;
  EXPECT_GE(expect_exact(graph, plan), 2u);
  plan.schedule = ScheduleKind::kGems;
  expect_exact(graph, plan);
  expect_exact(build_model("resnet18:width=4", {2, 3, 64, 64}), {1, {3, 4}, {}});
}

/// The memory of a process is measured from outside, in tests/cli: here, that it is one program.
TEST(RankClasses, ARankOfManyIsLoweredByItself) {
  const Graph graph = build_model("unet2d:base=2", {1, 3, 4096, 4096});
  const Lowering lowering(graph, {1, {64, 64}, {}});
  const Program program = lowering.program(2048 + 31);
  EXPECT_EQ(program.num_ranks, 4096);
  EXPECT_LT(simulate(program, at::kFloat).messages, 2500);
}

}  // namespace
}  // namespace tessera::rank_classes_test
