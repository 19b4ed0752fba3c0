// Schedules: drawn as their papers draw them, the papers' formulas, and what is refused.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tests/unit/lower/schedule_cases.h"
#include "tests/unit/refusal.h"

namespace tessera::schedule_test {
namespace {

// ---- Drawings -----------------------------------------------------------------------------------

TEST(ScheduleDrawing, Sequential) {
  EXPECT_EQ(drawn(Pipeline::chain(3, 3, 2), kSequential), R"(
0 | F0  .  .  .  .  .  . B0 B0 F1  .  .  .  .  .  . B1 B1
1 |  . F0  .  .  . B0 B0  .  .  . F1  .  .  . B1 B1  .  .
2 |  .  . F0 B0 B0  .  .  .  .  .  . F1 B1 B1  .  .  .  .
)");
}

TEST(ScheduleDrawing, Gpipe) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 4), kGpipe), R"(
0 | F0 F1 F2 F3  .  .  .  .  .  .  .  .  . B3 B3 B2 B2 B1 B1 B0 B0
1 |  . F0 F1 F2 F3  .  .  .  .  .  . B3 B3 B2 B2 B1 B1 B0 B0  .  .
2 |  .  . F0 F1 F2 F3  .  .  . B3 B3 B2 B2 B1 B1 B0 B0  .  .  .  .
3 |  .  .  . F0 F1 F2 F3 B3 B3 B2 B2 B1 B1 B0 B0  .  .  .  .  .  .
)");
}

TEST(ScheduleDrawing, OneForwardOneBackward) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 8), kOneForwardOneBackward), R"(
0 | F0 F1 F2 F3  .  .  .  .  .  . B0 B0 F4 B1 B1 F5 B2 B2 F6 B3 B3 F7 B4 B4  . B5 B5  . B6 B6  . B7 B7
1 |  . F0 F1 F2  .  .  .  . B0 B0 F3 B1 B1 F4 B2 B2 F5 B3 B3 F6 B4 B4 F7 B5 B5  . B6 B6  . B7 B7  .  .
2 |  .  . F0 F1  .  . B0 B0 F2 B1 B1 F3 B2 B2 F4 B3 B3 F5 B4 B4 F6 B5 B5 F7 B6 B6  . B7 B7  .  .  .  .
3 |  .  .  . F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 F4 B4 B4 F5 B5 B5 F6 B6 B6 F7 B7 B7  .  .  .  .  .  .
)");
}

// Stage s has 2 (p - s - 1) + (v - 1) p forwards ahead; a small letter is the second chunk.
TEST(ScheduleDrawing, Interleaved) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 8, 8), kInterleaved), R"(
0 | F0 F1 F2 F3 f0 f1 f2 f3 F4 F5 F6  .  .  . b0 b0 F7 b1 b1  . f4 b2 b2 f5 b3 b3 f6 B0 B0 f7 B1 B1 B2 B2  . B3 B3  . b4 b4  . b5 b5  . b6 b6  . b7 b7 B4 B4 B5 B5 B6 B6 B7 B7
1 |  . F0 F1 F2 F3 f0 f1 f2 f3 F4  .  . b0 b0 F5 b1 b1 F6 b2 b2 F7 b3 b3 f4 B0 B0 f5 B1 B1 f6 B2 B2 f7 B3 B3  . b4 b4  . b5 b5  . b6 b6  . b7 b7 B4 B4 B5 B5 B6 B6 B7 B7  .  .
2 |  .  . F0 F1 F2 F3 f0 f1 f2  . b0 b0 f3 b1 b1 F4 b2 b2 F5 b3 b3 F6 B0 B0 F7 B1 B1 f4 B2 B2 f5 B3 B3 f6 b4 b4 f7 b5 b5  . b6 b6  . b7 b7 B4 B4 B5 B5 B6 B6 B7 B7  .  .  .  .
3 |  .  .  . F0 F1 F2 F3 f0 b0 b0 f1 b1 b1 f2 b2 b2 f3 b3 b3 F4 B0 B0 F5 B1 B1 F6 B2 B2 F7 B3 B3 f4 b4 b4 f5 b5 b5 f6 b6 b6 f7 b7 b7 B4 B4 B5 B5 B6 B6 B7 B7  .  .  .  .  .  .
)");
}

// ZB-H1: stage s puts its weight gradients off by s micro-batches.
TEST(ScheduleDrawing, ZeroBubble) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 8), kZeroBubble), R"(
0 | F0 F1 F2 F3  .  .  . B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7
1 |  . F0 F1 F2  .  . B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7
2 |  .  . F0 F1  . B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7
3 |  .  .  . F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7
)");
}

// Micro-batch 1 enters at the last stage, after the backward of micro-batch 0.
TEST(ScheduleDrawing, Gems) {
  EXPECT_EQ(drawn(Pipeline::chain(4, 4, 2), kGems), R"(
0 | F0  .  .  .  .  .  .  .  .  . B0 B0 F1 B1 B1  .  .  .  .  .  .
1 |  . F0  .  .  .  .  .  . B0 B0 F1  .  .  .  . B1 B1  .  .  .  .
2 |  .  . F0  .  .  . B0 B0 F1  .  .  .  .  .  .  .  . B1 B1  .  .
3 |  .  .  . F0 B0 B0 F1  .  .  .  .  .  .  .  .  .  .  .  . B1 B1
)");
}

TEST(ScheduleDrawing, UNet) {
  EXPECT_EQ(drawn(u_net(2, 2), kOneForwardOneBackward), R"(
0 | F0 F1 f0 b0 b0 f1 b1 b1 B0 B0 B1 B1
1 |  . F0 F1  .  . B0 B0  . B1 B1  .  .
)");
}

// Where the inner stage takes three times as long, the outer one goes ahead of it with F2 rather
// than wait for f0, and the inner stage never waits once it has begun.
TEST(ScheduleDrawing, AnUnevenUNet) {
  EXPECT_EQ(drawn(u_net(2, 3), kOneForwardOneBackward), R"(
0 | F0 F1 f0 b0 b0 f1 b1 b1 F2 B0 B0 f2 B1 B1 b2 b2  .  . B2 B2
1 |  . F0 F1  .  . B0 B0  .  . F2 B1 B1  .  .  .  . B2 B2  .  .
)");
  Pipeline uneven = u_net(2, 3);
  uneven.forward_cost = uneven.backward_cost = uneven.weight_cost = {1, 3, 1};
  EXPECT_EQ(drawn(uneven, kOneForwardOneBackward), R"(
0 | F0 F1 F2  . f0 b0 b0 f1 b1 b1  .  .  . B0 B0  . f2 b2 b2  .  .  . B1 B1  .  .  .  . B2 B2
1 |  . F0 F0 F0 F1 F1 F1 B0 B0 B0 B0 B0 B0 F2 F2 F2 B1 B1 B1 B1 B1 B1 B2 B2 B2 B2 B2 B2  .  .
)");
}

TEST(ScheduleDrawing, ForwardsOnly) {
  Pipeline pipeline = Pipeline::chain(3, 3, 4);
  pipeline.backward = false;
  for (ScheduleKind kind : {kGpipe, kOneForwardOneBackward, kInterleaved, kZeroBubble})
    EXPECT_EQ(drawn(pipeline, kind), R"(
0 | F0 F1 F2 F3  .  .
1 |  . F0 F1 F2 F3  .
2 |  .  . F0 F1 F2 F3
)") << to_string(kind);
  EXPECT_EQ(drawn(pipeline, kGems), R"(
0 | F0 F2  . F1  . F3
1 |  . F0 F1 F2 F3  .
2 | F1 F3 F0  . F2  .
)");
}

TEST(ScheduleDrawing, ManyMicroBatchesAndChunks) {
  Pipeline pipeline = Pipeline::chain(1, 3, 11);
  pipeline.backward = false;
  EXPECT_EQ(drawn(pipeline, kSequential).substr(0, 44),
            "\n0 |  F00  f00 F00'  F01  f01 F01'  F02  f02");
}

TEST(ScheduleDrawing, ATaskFillsTheCellsWhoseMiddleItRunsIn) {
  Pipeline pipeline = Pipeline::chain(2, 2, 2);
  pipeline.forward_cost = {1.5, 0.25};
  pipeline.backward = false;
  EXPECT_EQ(drawn(pipeline, kGpipe), R"(
0 | F0 F1 F1  .
1 |  . F0  .  .
)");
}

TEST(ScheduleDrawing, NothingToDo) {
  EXPECT_EQ(drawn(Pipeline::chain(2, 0, 3), kOneForwardOneBackward), "\n0 |\n1 |\n");
  EXPECT_EQ(bubble_fraction({}, 2), 0);
}

// ---- Formulas -----------------------------------------------------------------------------------

TEST(ScheduleFormula, GpipeAndOneForwardOneBackward) {
  for (int p = 1; p <= 9; ++p)
    for (int m = 1; m <= 20; ++m) {
      SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", p, m));
      const Pipeline pipeline = Pipeline::chain(p, p, m);
      const Tasks gpipe = schedule_tasks(pipeline, kGpipe);
      const Tasks alternating = schedule_tasks(pipeline, kOneForwardOneBackward);
      EXPECT_NEAR(bubble_fraction(gpipe, p), (p - 1.0) / (m + p - 1), 1e-12);
      EXPECT_NEAR(bubble_fraction(alternating, p), (p - 1.0) / (m + p - 1), 1e-12);
      EXPECT_EQ(most_in_flight(gpipe, p), std::vector<int>(p, m));
      for (int s = 0; s < p; ++s)
        EXPECT_EQ(most_in_flight(alternating, p)[s], std::min(p - s, m)) << "stage " << s;
    }
}

TEST(ScheduleFormula, Interleaved) {
  for (int p = 1; p <= 6; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p) {
        const Tasks tasks = schedule_tasks(Pipeline::chain(p, p * v, m), kInterleaved);
        EXPECT_NEAR(bubble_fraction(tasks, p), (p - 1.0) / (v * m + p - 1), 1e-12)
            << p << " stages, " << v << " chunks each, " << m << " micro-batches";
      }
}

TEST(ScheduleFormula, ZeroBubble) {
  for (int p = 1; p <= 12; ++p)
    for (int m = p; m <= 3 * p + 2; ++m) {
      SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", p, m));
      const Tasks tasks = schedule_tasks(Pipeline::chain(p, p, m), kZeroBubble);
      EXPECT_EQ(end_of(tasks), 3 * m + (p - 1));  // 1F1B: 3 m + 3 (p - 1)
      EXPECT_EQ(most_in_flight(tasks, p), std::vector<int>(p, p));
    }
}

TEST(ScheduleFormula, Gems) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 7; ++m) {
      SCOPED_TRACE(fmt::format("{} stages, {} micro-batches", p, m));
      const Tasks tasks = schedule_tasks(Pipeline::chain(p, p, m), kGems);
      EXPECT_EQ(end_of(tasks), 3 * p + (m - 1) * (2 * p + 1));  // a forward is hidden, but one task
      EXPECT_EQ(most_in_flight(tasks, p), std::vector<int>(p, 1));
    }
  EXPECT_EQ(drawn(Pipeline::chain(5, 5, 1), kGems), drawn(Pipeline::chain(5, 5, 1), kSequential));
}

TEST(ScheduleFormula, Sequential) {
  const Tasks tasks = schedule_tasks(Pipeline::chain(4, 8, 3), kSequential);
  EXPECT_EQ(end_of(tasks), 3 * 8 * 3);
  EXPECT_NEAR(bubble_fraction(tasks, 4), 0.75, 1e-12);
}

TEST(ScheduleFormula, CostsSetTheTimes) {
  Pipeline pipeline = Pipeline::chain(1, 1, 1);
  pipeline.forward_cost = {3};
  pipeline.backward_cost = {5};
  pipeline.weight_cost = {7};
  const Tasks whole = schedule_tasks(pipeline, kOneForwardOneBackward);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[1].begin, 3);
  EXPECT_EQ(whole[1].end, 15);
  const Tasks split = schedule_tasks(pipeline, kZeroBubble);
  ASSERT_EQ(split.size(), 3u);
  EXPECT_EQ(split[1].end, 8);
  EXPECT_EQ(split[2].task.kind, TaskKind::kWeight);
  EXPECT_EQ(split[2].end, 15);
}

// ---- Refusals -----------------------------------------------------------------------------------

std::string refusal(const Pipeline& pipeline, ScheduleKind kind) {
  return tessera::refusal([&] { schedule_tasks(pipeline, kind); });
}

TEST(ScheduleRefusal, InterleavedNeedsAFittingPipeline) {
  EXPECT_EQ(refusal(Pipeline::chain(4, 8, 6), kInterleaved),
            "[schedule interleaved] 6 micro-batches on 4 stages; give a number of micro-batches "
            "that 4 divides, or use 1f1b");
  EXPECT_EQ(refusal(Pipeline::chain(4, 6, 8), kInterleaved),
            "[schedule interleaved] 6 parts of the network on 4 stages; cut it into a number of "
            "parts that 4 divides, or use 1f1b");
  EXPECT_EQ(refusal(u_net(3, 3), kInterleaved),
            "[schedule interleaved] part 3 of the network runs on stage 1, not on 0: parts must go "
            "round the 3 stages in turn; assign them so, or use 1f1b");
}

TEST(ScheduleRefusal, ImpossiblePipelines) {
  EXPECT_EQ(refusal(Pipeline::chain(2, 2, 0), kGpipe),
            "[schedule] 0 micro-batches; give at least 1");
  Pipeline no_stages = Pipeline::chain(2, 2, 1);
  no_stages.num_stages = 0;
  EXPECT_EQ(refusal(no_stages, kGpipe), "[schedule] 0 stages; give at least 1");
}

TEST(ScheduleRefusal, BrokenPipelinesAreOurBug) {
  Pipeline pipeline = Pipeline::chain(2, 2, 1);
  pipeline.chunks_before[0] = {1};
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
  pipeline = Pipeline::chain(2, 2, 1);
  pipeline.stage_of_chunk[1] = 2;
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
  pipeline = Pipeline::chain(2, 2, 1);
  pipeline.forward_cost = {1};
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
  pipeline.forward_cost = {1, -1};
  EXPECT_THROW(schedule_tasks(pipeline, kGpipe), InternalError);
}

}  // namespace
}  // namespace tessera::schedule_test
