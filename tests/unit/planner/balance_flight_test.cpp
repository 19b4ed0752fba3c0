#include "tessera/planner/balance_flight.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/planner/balance_places.h"

namespace tessera::balance_flight_test {
namespace {

constexpr int kStages = 4;

/// Of one stage, where chunk i runs on stage_of_chunk[i].
Flight flight_of(int stage, const std::vector<int>& stage_of_chunk, int micro_batches,
                 ScheduleKind kind) {
  Pipeline pipeline = Pipeline::chain(1, static_cast<int>(stage_of_chunk.size()), micro_batches);
  pipeline.num_stages = kStages;
  pipeline.stage_of_chunk = stage_of_chunk;
  std::vector<ScheduledTask> own;
  for (const ScheduledTask& each : schedule_tasks(pipeline, kind))
    if (each.stage == stage) own.push_back(each);
  return Flight(own);
}

double held_by_stage(int stage, const HeldBytes& held, int micro_batches, ScheduleKind kind) {
  return flight_of(stage, stages_in_turn(kStages, kStages), micro_batches, kind)
      .bytes({{0, 1}}, [&](const Segments&) { return held; });
}

TEST(BalanceFlight, CountsMicroBatchesAsSchedulesHoldThem) {
  const HeldBytes one_byte{0, {{1, 1}, {1, 0}}};
  for (int stage = 0; stage < kStages; ++stage) {
    EXPECT_EQ(held_by_stage(stage, one_byte, 8, ScheduleKind::kSequential), 1);
    EXPECT_EQ(held_by_stage(stage, one_byte, 8, ScheduleKind::kGpipe), 8);
    EXPECT_EQ(held_by_stage(stage, one_byte, 8, ScheduleKind::kOneForwardOneBackward),
              kStages - stage);
    EXPECT_EQ(held_by_stage(stage, one_byte, 2, ScheduleKind::kOneForwardOneBackward),
              std::min(2, kStages - stage));
  }
}

TEST(BalanceFlight, OneMicroBatchIsAtItsPeakAndTheOthersHoldWhatTheyHaveLeft) {
  const HeldBytes held{1000, {{10, 1}, {50, 0}}};
  EXPECT_EQ(held_by_stage(0, held, 8, ScheduleKind::kGpipe), 1000 + 50 + 7);
  EXPECT_EQ(held_by_stage(kStages - 1, held, 8, ScheduleKind::kOneForwardOneBackward), 1000 + 50);
}

TEST(BalanceFlight, WeightGradientsHoldTheirInputsUntilTheyAreDone) {
  for (int stage = 0; stage < kStages; ++stage) {
    const HeldBytes released{0, {{1, 1}, {1, 0}, {0, 0}}}, kept{0, {{1, 1}, {1, 1}, {1, 0}}};
    EXPECT_EQ(held_by_stage(stage, released, 8, ScheduleKind::kZeroBubble), kStages - stage);
    EXPECT_EQ(held_by_stage(stage, kept, 8, ScheduleKind::kZeroBubble), kStages);
  }
}

TEST(BalanceFlight, AMicroBatchGoesThroughBothPartsOfARing) {
  const Flight flight = flight_of(0, stages_in_v(kStages), 1, ScheduleKind::kOneForwardOneBackward);
  const auto holding = [](const Segments& segments) {
    EXPECT_EQ(segments, (Segments{{0, 2}, {7, 9}}));
    return HeldBytes{5, {{1, 1}, {2, 2}, {30, 1}, {1, 0}}};
  };
  EXPECT_EQ(flight.bytes({{0, 2}, {7, 9}}, holding), 5 + 30);
  EXPECT_TRUE(std::isinf(flight.bytes({{0, 9}}, holding)));
}

TEST(BalanceFlight, MirroredMicroBatchesAreAtTheOtherEnd) {
  const Flight flight = flight_of(0, stages_in_turn(kStages, kStages), 2, ScheduleKind::kGems);
  const auto holding = [](const Segments& segments) {
    if (segments == Segments{{0, 2}}) return HeldBytes{1000, {{1, 1}, {1, 0}}};
    EXPECT_EQ(segments, (Segments{{7, 9}}));
    return HeldBytes{2000, {{50, 1}, {50, 0}}};
  };
  EXPECT_EQ(flight.bytes({{0, 2}, {7, 9}}, holding), 3000 + 50);
}

}  // namespace
}  // namespace tessera::balance_flight_test
