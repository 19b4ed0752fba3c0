// Exact times of programs that can be followed on paper.

#include "tessera/simulate/timeline.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tests/unit/simulate/hand_made.h"

namespace tessera::timeline_test {
namespace {

using namespace hand_made;

struct Times {
  double begin, end;
  bool operator==(const Times&) const = default;
  friend void PrintTo(const Times& times, std::ostream* out) {
    *out << "[" << times.begin << ", " << times.end << "]";
  }
};

std::vector<Times> of_rank(int rank, const std::vector<TimelineSpan>& spans) {
  std::vector<Times> times;
  for (const TimelineSpan& span : spans)
    if (span.rank == rank) times.push_back({span.begin, span.end});
  return times;
}

/// Without costs of kernels the graph does not matter.
Timeline timeline_of(const std::vector<Program>& programs) {
  return make_timeline(programs, Graph());
}

TEST(Timeline, CountsABackwardTwiceAForward) {
  const Timeline timeline = timeline_of({program(0, 1, {forward(0), backward(0)})});
  EXPECT_EQ(of_rank(0, timeline.tasks), (std::vector<Times>{{0, 1}, {1, 3}}));
  EXPECT_EQ(timeline.step_time, 3);
  EXPECT_EQ(timeline.bubble_fraction(), 0);
}

TEST(Timeline, HalvesABackwardWhereWeightGradientsAreTasks) {
  const Timeline timeline =
      timeline_of({program(0, 2, {forward(0), backward(0), weight(0), finish_step()}),
                   program(1, 2, {forward(0), backward(0)})});
  EXPECT_EQ(of_rank(0, timeline.tasks), (std::vector<Times>{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(of_rank(1, timeline.tasks), (std::vector<Times>{{0, 1}, {1, 2}}));
  EXPECT_EQ(timeline.ranks[1].idle, 1);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), 1.0 / 6);
}

TEST(Timeline, ReproducesTheDrawingOfASchedule) {
  const Timeline timeline = timeline_of(two_stages());
  EXPECT_EQ(of_rank(0, timeline.tasks),
            (std::vector<Times>{{0, 1}, {1, 2}, {2, 6}, {6, 7}, {7, 9}, {9, 12}}));
  EXPECT_EQ(of_rank(0, timeline.waits), (std::vector<Times>{{2, 4}, {9, 10}}));
  EXPECT_EQ(of_rank(1, timeline.tasks),
            (std::vector<Times>{{0, 2}, {2, 4}, {4, 5}, {5, 7}, {7, 8}, {8, 10}}));
  EXPECT_EQ(of_rank(1, timeline.waits), (std::vector<Times>{{0, 1}}));
  EXPECT_EQ(timeline.ranks[0].busy, 9);
  EXPECT_EQ(timeline.ranks[1].idle, 3);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction(), 1.0 / 4);
}

TEST(Timeline, ASendWaitsUntilItsReceiveIsPosted) {
  const Timeline timeline =
      timeline_of({program(0, 2, {forward(0), send(1, 1), finish(1), forward(1)}),
                   program(1, 2, {backward(0), forward(0), receive(1, 0), finish(1)})});
  // The receive is posted when rank 1 comes to its forward, at 2.
  EXPECT_EQ(of_rank(0, timeline.waits), (std::vector<Times>{{1, 2}}));
  EXPECT_EQ(of_rank(0, timeline.tasks), (std::vector<Times>{{0, 2}, {2, 3}}));
  EXPECT_EQ(of_rank(1, timeline.waits), std::vector<Times>{});
}

TEST(Timeline, ATaskWorksBeforeItWaitsForASendToBeTaken) {
  // Rank 1 takes the message at 2, when the second forward of rank 0 is done.
  const Timeline timeline =
      timeline_of({program(0, 2, {forward(0), send(1, 1), forward(1), finish(1), forward(2)}),
                   program(1, 2, {backward(0), forward(0), receive(1, 0), finish(1)})});
  EXPECT_EQ(of_rank(0, timeline.tasks), (std::vector<Times>{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(timeline.waits.size(), 0u);
}

TEST(Timeline, AReceivePostedEarlyLetsTheSenderGo) {
  const Timeline timeline =
      timeline_of({program(0, 2, {forward(0), send(1, 1), finish(1), forward(1)}),
                   program(1, 2, {receive(1, 0), backward(0), forward(0), finish(1)})});
  EXPECT_EQ(timeline.waits.size(), 0u);
}

TEST(Timeline, TheNthSendMeetsTheNthReceive) {
  // Both receives are posted at once; only the second message comes late.
  const Timeline timeline = timeline_of(
      {program(0, 2, {forward(0), send(1, 1), backward(0), send(2, 1), finish(1), finish(2)}),
       program(1, 2, {receive(1, 0), receive(2, 0), finish(1), forward(0), finish(2)})});
  EXPECT_EQ(of_rank(1, timeline.waits), (std::vector<Times>{{0, 1}, {1, 3}}));
}

/// Two ranks that start a reduction at 1 and 2 and come to its Finish at 1 and 4.
std::vector<Program> two_that_reduce(BufferId buffer) {
  const StartReduce start{7, buffer, -1, {0, 1}};
  const FinishReduce finish{7, buffer, -1, {0, 1}};
  return {program(0, 2, {forward(0), start, finish_step(), finish}),
          program(1, 2, {backward(0), start, backward(1), finish_step(), finish})};
}

TEST(Timeline, AReductionWaitsForTheLastToFinish) {
  // Terms meet at 2, when both have started; sums are posted inside FinishReduce, at 4.
  const Timeline timeline = timeline_of(two_that_reduce(kSum));
  EXPECT_EQ(of_rank(0, timeline.waits), (std::vector<Times>{{1, 2}, {2, 4}}));
  EXPECT_EQ(of_rank(1, timeline.waits), std::vector<Times>{});
  EXPECT_EQ(timeline.step_time, 4);
}

TEST(Timeline, AnAdvanceWaitsForItsTermsAndPostsTheSums) {
  const StartReduce start{7, kSum, -1, {0, 1}};
  const AdvanceReduce advance{7, kSum, -1, {0, 1}};
  const FinishReduce finish{7, kSum, -1, {0, 1}, 2};
  const Timeline timeline = timeline_of(
      {program(0, 2, {forward(0), start, advance, backward(0), finish_step(), finish}),
       program(1, 2, {backward(0), start, advance, backward(1), finish_step(), finish})});
  // Rank 0 waits for the terms of rank 1, which starts at 2; then both have the sums under way.
  EXPECT_EQ(of_rank(0, timeline.waits), (std::vector<Times>{{1, 2}}));
  EXPECT_EQ(of_rank(1, timeline.waits), std::vector<Times>{});
  EXPECT_EQ(timeline.step_time, 4);
}

TEST(Timeline, AReductionOfOneNumberIsATree) {
  // Rank 0 owns the number: it waits for rank 1's term, and rank 1 for the sum.
  const Timeline timeline = timeline_of(two_that_reduce(kNumber));
  EXPECT_EQ(of_rank(0, timeline.waits), (std::vector<Times>{{1, 2}, {2, 4}}));
  EXPECT_EQ(of_rank(1, timeline.waits), std::vector<Times>{});
}

TEST(Timeline, ProgramsThatWaitForEachOtherAreABug) {
  EXPECT_THROW(timeline_of({program(0, 2, {receive(1, 1), finish(1), send(2, 1), finish(2)}),
                            program(1, 2, {receive(2, 0), finish(2), send(1, 0), finish(1)})}),
               InternalError);
}

/// A row of the kernel takes a tenth of a second.
class SecondsTimeline : public testing::Test {
 protected:
  Timeline timeline_of(const std::vector<Program>& programs) const {
    return make_timeline(programs, graph_of_one_kernel(), Roofline(rates_));
  }
  RooflineRates rates_{.flops_per_second = 100, .memory_bytes_per_second = 1e9};
};

TEST_F(SecondsTimeline, KernelsCostTheirOperations) {
  const Timeline timeline = timeline_of(
      {program(0, 1,
               {forward(0), kernel(Phase::kForward, 10), kernel(Phase::kPieceStatistics, 5),
                kernel(Phase::kMergeStatistics, 10), backward(0), kernel(Phase::kRecompute, 1),
                kernel(Phase::kInputGradient, 2), kernel(Phase::kWeightGradient, 3)})});
  const std::vector<Times> tasks = of_rank(0, timeline.tasks);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_DOUBLE_EQ(tasks[0].end, 1.5);
  EXPECT_DOUBLE_EQ(tasks[1].end, 2.1);
  EXPECT_DOUBLE_EQ(timeline.ranks[0].busy, 2.1);
}

TEST_F(SecondsTimeline, MessagesTakeLatencyAndBytesOverBandwidth) {
  rates_.message_latency_seconds = 0.25;
  rates_.message_bytes_per_second = 2000;  // the strip's 1000 bytes take half a second
  const Timeline timeline = timeline_of(
      {program(0, 2,
               {forward(0), kernel(Phase::kForward, 10), send(1, 1), forward(1),
                kernel(Phase::kForward, 10), finish(1)}),
       program(1, 2, {forward(0), receive(1, 0), finish(1), kernel(Phase::kForward, 10)})});
  EXPECT_EQ(of_rank(1, timeline.waits), (std::vector<Times>{{0, 1.75}}));
  EXPECT_EQ(of_rank(0, timeline.waits), std::vector<Times>{});
  EXPECT_DOUBLE_EQ(timeline.step_time, 2.75);
}

TEST_F(SecondsTimeline, ALateReceiveCostsNothingMore) {
  rates_.message_latency_seconds = 0.25;
  const Timeline timeline = timeline_of(
      {program(0, 2, {send(1, 1), finish(1)}),
       program(1, 2, {forward(0), kernel(Phase::kForward, 10), receive(1, 0), finish(1)})});
  EXPECT_EQ(of_rank(0, timeline.waits), (std::vector<Times>{{0, 1}}));
  EXPECT_EQ(of_rank(1, timeline.waits), std::vector<Times>{});
}

}  // namespace
}  // namespace tessera::timeline_test
