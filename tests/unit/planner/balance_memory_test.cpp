#include "tessera/planner/balance_memory.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/lower/micro_batch_norm.h"
#include "tessera/planner/balance_memory_model.h"
#include "tessera/planner/balance_sums.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/planner/balance_cases.h"

namespace tessera::balance_memory_test {
namespace {

StagedSegments random_cuts(const std::vector<NodeId>& places, std::vector<int> stage_of_segment,
                           int seed) {
  std::mt19937 generator(seed);
  std::vector<NodeId> inner(places.begin() + 1, places.end() - 1);
  std::shuffle(inner.begin(), inner.end(), generator);
  inner.resize(stage_of_segment.size() - 1);
  inner.push_back(places.front());
  inner.push_back(places.back());
  std::sort(inner.begin(), inner.end());
  return {inner, std::move(stage_of_segment)};
}

TEST(BalanceMemory, IsThatOfAnExhaustiveSearch) {
  const Graph graph = build_model("unet2d:base=4,depth=2", {1, 3, 32, 32});
  const std::vector<NodeId> places = cut_places(graph, 3);
  const BalanceOptions options{.by = BalanceBy::kMemory, .optimiser_copies = 1};
  for (int num_stages : {2, 3}) {
    const Plan plan = staged_plan(num_stages, 1, ScheduleKind::kOneForwardOneBackward);
    double best = 1e300;
    for (const auto& stages : {stages_in_turn(num_stages, num_stages), stages_in_v(num_stages)})
      for_each_cut(places, stages, [&](const StagedSegments& assignment) {
        best = std::min(best, largest(simulated_stage_bytes(graph, plan, assignment, options)));
      });
    const StagedSegments found = balance_by_memory(graph, plan, options, num_stages, places);
    EXPECT_LE(largest(simulated_stage_bytes(graph, plan, found, options)), 1.01 * best)
        << num_stages << " stages";
  }
}

TEST(BalanceMemory, LevelsOfAUnetShareTheirStage) {
  const Graph graph = build_model("unet2d:base=4,depth=3", {1, 3, 64, 64});
  const std::vector<NodeId> places = cut_places(graph, 3);
  const Plan plan = staged_plan(3);
  const StagedSegments found = balance_by_memory(graph, plan, {}, 3, places);
  EXPECT_EQ(found.stage_of_segment, stages_in_v(3));
  double best_consecutive = 1e300;
  for_each_cut(places, {0, 1, 2}, [&](const StagedSegments& assignment) {
    best_consecutive =
        std::min(best_consecutive, largest(simulated_stage_bytes(graph, plan, assignment, {})));
  });
  EXPECT_LT(largest(simulated_stage_bytes(graph, plan, found, {})), best_consecutive);
}

TEST(BalanceMemory, TheModelOfOneStageIsExact) {
  for (const char* name : {"unet2d:base=4,depth=3", "resnet18:width=4", "densenet121:growth=4"})
    for (const auto& grid : {std::vector<int64_t>{1, 1}, {2, 2}})
      for (ScheduleKind schedule :
           {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZeroBubble}) {
        const Graph graph = build_model(name, {2, 3, 64, 64});
        Plan plan;
        plan.space = grid;
        plan.schedule = schedule;
        const BalanceOptions options{.optimiser_copies = 2};
        const std::vector<NodeId> places = cut_places(graph, 1);
        const StagedSegments whole{{0, places.back()}, {0}};
        MemoryModel model(graph, plan, options, places, single_chunks(1, 1));
        model.expect(whole.cuts);
        const int num_units = static_cast<int>(places.size()) - 1;
        const double counted = simulated_stage_bytes(graph, plan, whole, options)[0];
        // A rank of several may end a send in a later task than the model says.
        EXPECT_NEAR(model.bytes({{{0, num_units}}})[0], counted,
                    plan.num_ranks() == 1 ? 0 : 1e-4 * counted)
            << name << " on " << to_string(plan);
      }
}

/// What the model says of every stage of an assignment, as a part of what the largest holds.
void expect_near(const Graph& graph, const Plan& plan, const StagedSegments& assignment,
                 double tolerance) {
  const bool is_v = assignment.stage_of_segment.size() > plan.stages.size();
  const int num_stages = plan.num_stages();
  const ChunkGroups chunks = is_v ? ring_chunks(num_stages) : single_chunks(num_stages, num_stages);
  const std::vector<double> counted = simulated_stage_bytes(graph, plan, assignment, {});
  MemoryModel model(graph, plan, {}, assignment.cuts, chunks);
  model.expect(assignment.cuts);
  for (int stage = 0; stage < num_stages; ++stage) {
    Segments segments;
    for (int chunk : chunks.groups[stage][0]) segments.emplace_back(chunk, chunk + 1);
    EXPECT_NEAR(model.bytes({segments})[stage] / largest(counted),
                counted[stage] / largest(counted), tolerance)
        << to_string(plan) << (is_v ? ", V" : "") << ", stage " << stage;
  }
}

/// The model is allowed to be wrong, since stages are measured; if it were wrong by much it would
/// propose the wrong ones.
TEST(BalanceMemory, TheModelPredictsWhatTheSimulatorCounts) {
  const Graph graph = build_model("unet2d:base=4,depth=3,norm=none", {6, 3, 32, 32});
  const std::vector<NodeId> places = cut_places(graph, 3);
  for (ScheduleKind schedule : {ScheduleKind::kSequential, ScheduleKind::kGpipe,
                                ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZeroBubble})
    for (int64_t micro_batches : {1, 6})
      for (int seed = 0; seed < 4; ++seed) {
        SCOPED_TRACE(seed);
        expect_near(
            graph, staged_plan(3, micro_batches, schedule),
            random_cuts(places, seed % 2 == 1 ? stages_in_v(3) : stages_in_turn(3, 3), seed), 0.05);
      }
}

TEST(BalanceMemory, TheModelKnowsGridsAndStatistics) {
  const Graph graph = with_micro_batch_norm(build_model("resnet18:width=8", {6, 3, 64, 64}), 6);
  const std::vector<NodeId> places = cut_places(graph, 3);
  for (ScheduleKind schedule : {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZeroBubble})
    for (int seed = 0; seed < 6; ++seed) {
      SCOPED_TRACE(seed);
      Plan plan = staged_plan(3, 6, schedule);
      plan.stages = {{2, 2}, {1, 2}, {1, 1}};
      expect_near(graph, plan, random_cuts(places, stages_in_turn(3, 3), seed), 0.05);
    }
}

TEST(BalanceMemory, IsNeverWorseThanAnEvenSplitAndOftenMuchBetter) {
  const Graph graph = build_model("unet2d:base=4,depth=4,norm=none", {8, 3, 64, 64});
  const BalanceOptions options{.by = BalanceBy::kMemory, .optimiser_copies = 2};
  for (const std::string& name : schedule_names()) {
    const Plan plan = staged_plan(4, 8, parse_schedule(name));
    const int num_segments = plan.schedule == ScheduleKind::kInterleaved ? 8 : 4;
    const std::vector<NodeId> places = cut_places(graph, num_segments);
    const StagedSegments even = balance_by_layers(graph, plan, num_segments, places);
    const StagedSegments found = balance_by_memory(graph, plan, options, num_segments, places);
    const double ratio = largest(simulated_stage_bytes(graph, plan, found, options)) /
                         largest(simulated_stage_bytes(graph, plan, even, options));
    EXPECT_LE(ratio, 1) << name;
    if (plan.schedule == ScheduleKind::kOneForwardOneBackward) {
      EXPECT_LE(ratio, 0.65);
    }
  }
}

/// The zoo's U-Net as it is: the figure that the even split is held against.
TEST(BalanceMemory, AUnetNeedsThreeFifthsOfTheEvenSplit) {
  const Graph graph = build_model("unet2d", {1, 3, 256, 256});
  const BalanceOptions options{.by = BalanceBy::kMemory};
  for (int num_stages : {4, 8}) {
    const Plan plan = staged_plan(num_stages, 1, ScheduleKind::kOneForwardOneBackward);
    const std::vector<NodeId> places = cut_places(graph, num_stages);
    const StagedSegments even = balance_by_layers(graph, plan, num_stages, places);
    const StagedSegments found = balance_by_memory(graph, plan, options, num_stages, places);
    EXPECT_LE(largest(simulated_stage_bytes(graph, plan, found, options)),
              0.6 * largest(simulated_stage_bytes(graph, plan, even, options)))
        << num_stages;
  }
}

TEST(BalanceMemory, KnowsTheGridsOfStages) {
  const Graph graph = build_model("unet2d:base=4,depth=3", {1, 3, 64, 64});
  Plan plan = staged_plan(3);
  plan.stages = {{2, 2}, {1, 1}, {1, 2}};
  const std::vector<NodeId> places = cut_places(graph, 3);
  const auto bytes = [&](const StagedSegments& assignment) {
    return simulated_stage_bytes(graph, plan, assignment, {});
  };
  double best = 1e300;
  for_each_cut(cheapest_places(graph, places, 14), {0, 1, 2}, [&](const StagedSegments& segments) {
    best = std::min(best, largest(bytes(segments)));
  });
  EXPECT_LE(largest(bytes(balance_by_memory(graph, plan, {}, 3, places))), 1.01 * best);
}

TEST(BalanceMemory, TakesTheCheapestPlacesOfALongNetwork) {
  const Graph graph = build_model("resnet18:width=4", {1, 3, 64, 64});
  const std::vector<NodeId> all = cut_places(graph, 4), few = cheapest_places(graph, all, 10);
  EXPECT_EQ(few.size(), 10u);
  EXPECT_EQ(few.front(), 0);
  EXPECT_EQ(few.back(), static_cast<NodeId>(graph.nodes().size()));
  EXPECT_TRUE(std::includes(all.begin(), all.end(), few.begin(), few.end()));
  EXPECT_EQ(cheapest_places(graph, all, static_cast<int>(all.size())), all);
}

}  // namespace
}  // namespace tessera::balance_memory_test
