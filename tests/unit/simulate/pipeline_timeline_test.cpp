// The programs that lowering makes keep their schedule: with a unit per task, nothing waits that
// the drawing does not show.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/lower/lower.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/simulate/draw_timeline.h"
#include "tessera/simulate/timeline.h"
#include "tessera/zoo/zoo.h"

namespace tessera::pipeline_timeline_test {
namespace {

/// Equal convolutions in a row, convolution i on stage i % stages.
struct Chain {
  Chain(int stages, int convolutions, int micro_batches, ScheduleKind kind)
      : pipeline(Pipeline::chain(stages, convolutions, micro_batches)) {
    ValueId x = graph.add_input("image", ValueType::image({micro_batches, 2, 4, 4}));
    for (int i = 0; i < convolutions; ++i) {
      const std::string name = fmt::format("conv{}", i);
      x = convolution(graph, x, name, {.out_channels = 2, .kernel = {3}, .padding = {1}});
      plan.stage_of[name] = i % stages;
    }
    mean_squared_error(graph, x, add_real_target(graph, x, "target"), "loss");
    plan.stage_of["loss"] = (convolutions - 1) % stages;
    plan.stages.assign(stages, {1, 1});
    plan.micro_batches = micro_batches;
    plan.schedule = kind;
  }
  Timeline timeline(const CostModel& costs = UnitCosts()) const {
    const Lowered lowered = lower(graph, plan);
    return make_timeline(lowered.programs, lowered.graph, costs);
  }
  Graph graph;
  Plan plan;
  Pipeline pipeline;
};

constexpr ScheduleKind kOneForwardOneBackward = ScheduleKind::kOneForwardOneBackward;

TEST(PipelineTimeline, OneForwardOneBackwardHasItsKnownBubble) {
  for (int p : {1, 2, 4})
    for (int m : {1, 3, 8}) {
      const Timeline timeline = Chain(p, p, m, kOneForwardOneBackward).timeline();
      EXPECT_EQ(timeline.step_time, 3 * (m + p - 1)) << draw_timeline(timeline);
      EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), double(p - 1) / (m + p - 1)) << p << " " << m;
    }
}

/// When a task's work is done; it may still wait for others to take what it sent.
double end_of_work(const ScheduledTask& scheduled, const Timeline& timeline) {
  double end = -1;
  for (const TimelineSpan& span : timeline.tasks)
    if (span.rank == scheduled.stage && span.enter.part == Enter::Part::kTask &&
        span.enter.task == scheduled.task)
      end = span.end;
  for (const TimelineSpan& wait : timeline.waits)
    if (wait.rank == scheduled.stage && wait.end == end) end = wait.begin;
  return end;
}

struct Case {
  ScheduleKind kind;
  int chunks_per_stage;
};

class EverySchedule : public testing::TestWithParam<Case> {};

TEST_P(EverySchedule, TakesTheTimeOfItsDrawing) {
  constexpr int kStages = 4, kMicroBatches = 8;
  const auto [kind, chunks_per_stage] = GetParam();
  const Chain chain(kStages, kStages * chunks_per_stage, kMicroBatches, kind);
  const std::vector<ScheduledTask> drawn = schedule_tasks(chain.pipeline, kind);
  const Timeline timeline = chain.timeline();
  for (const ScheduledTask& scheduled : drawn)
    ASSERT_EQ(end_of_work(scheduled, timeline), scheduled.end)
        << draw_timeline(timeline, 120) << draw_schedule(drawn, kStages);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), bubble_fraction(drawn, kStages));
}

INSTANTIATE_TEST_SUITE_P(
    , EverySchedule,
    testing::Values(Case{ScheduleKind::kSequential, 1}, Case{ScheduleKind::kGpipe, 1},
                    Case{kOneForwardOneBackward, 1}, Case{ScheduleKind::kInterleaved, 2},
                    Case{ScheduleKind::kZeroBubble, 1}, Case{ScheduleKind::kGems, 1}),
    [](const testing::TestParamInfo<Case>& param) {
      std::string name = to_string(param.param.kind);
      std::erase(name, '-');
      return name;
    });

TEST(PipelineTimeline, StagesWithGridsExchangeHalosInsideTheirTasks) {
  Chain chain(3, 3, 4, kOneForwardOneBackward);
  chain.plan.stages = {{2, 2}, {1, 2}, {1, 1}};
  const Timeline timeline = chain.timeline();
  ASSERT_EQ(timeline.ranks.size(), 7u);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), 2.0 / 6) << draw_timeline(timeline);
}

TEST(PipelineTimeline, AnUnevenStageShowsInSeconds) {
  // The last stage also has the loss, so the others wait for it.
  const Timeline timeline = Chain(3, 3, 6, kOneForwardOneBackward).timeline(Roofline());
  EXPECT_GT(timeline.ranks[2].busy, timeline.ranks[1].busy);
  EXPECT_GT(timeline.ranks[1].busy, timeline.ranks[0].busy);  // which needs no input gradient
  EXPECT_GT(timeline.bubble_fraction(), 2.0 / 8);
}

/// A U-Net with a level of the encoder and its mirror on each stage, and the rest on the last.
Plan plan_in_v(const Graph& graph, int num_stages, ScheduleKind kind) {
  Plan plan;
  plan.stages.resize(num_stages);
  plan.micro_batches = 8;
  plan.schedule = kind;
  for (const Node& node : graph.nodes()) {
    const size_t digit = node.name.find_first_of("1234");  // of the level
    const bool is_on_top = node.name == "head" || node.name == "loss";
    const int level = is_on_top                             ? 0
                      : node.name.starts_with("bottleneck") ? num_stages - 1
                                                            : node.name[digit] - '1';
    plan.stage_of[node.name] = std::min(level, num_stages - 1);
  }
  return plan;
}

/// Levels of a U-Net take different times, and a stage has two chunks to choose from.
TEST(PipelineTimeline, UnevenChunksWaitLessWhereCostsOrderThem) {
  const Graph graph = build_model("unet2d:base=4,depth=4,norm=none", {8, 3, 64, 64});
  for (ScheduleKind kind :
       {ScheduleKind::kGpipe, kOneForwardOneBackward, ScheduleKind::kZeroBubble}) {
    Plan plan = plan_in_v(graph, 3, kind);
    const auto seconds = [&](ScheduleCosts costs) {
      plan.schedule_costs = costs;
      const Lowered lowered = lower(graph, plan);
      return make_timeline(lowered.programs, lowered.graph, Roofline()).step_time;
    };
    EXPECT_LT(seconds(ScheduleCosts::kFlops), 0.95 * seconds(ScheduleCosts::kTasks))
        << to_string(kind);
  }
}

}  // namespace
}  // namespace tessera::pipeline_timeline_test
