#include "tessera/planner/balance_flight.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/planner/balance_places.h"

namespace tessera::balance_flight_test {
namespace {

constexpr int kStages = 4;

/// One segment that holds 1 byte from its forward to its backward, on a network of a unit a chunk.
TrackProfile one_byte(int unit) {
  TrackProfile track{{{unit, unit + 1}}, {}};
  track.profile.peak = {1, 1, 0};
  track.profile.level = {1, 0, 0};
  track.profile.sent = {0, 0, 0};
  track.profile.weight_bytes = {0};
  return track;
}

std::vector<int> unit_per_chunk(int num_chunks) {
  std::vector<int> chunks;
  for (int chunk = 0; chunk < num_chunks; ++chunk) chunks.push_back(chunk);
  return chunks;
}

double held_by_stage(int stage, const TrackProfile& track, int64_t micro_batches,
                     ScheduleKind kind) {
  const Flights flights(stages_in_turn(kStages, kStages), {{stage}}, micro_batches, kind);
  return flights.bytes({&track}, unit_per_chunk(kStages));
}

TEST(BalanceFlight, CountsMicroBatchesAsSchedulesHoldThem) {
  for (int stage = 0; stage < kStages; ++stage) {
    const TrackProfile track = one_byte(stage);
    EXPECT_EQ(held_by_stage(stage, track, 8, ScheduleKind::kSequential), 1);
    EXPECT_EQ(held_by_stage(stage, track, 8, ScheduleKind::kGpipe), 8);
    EXPECT_EQ(held_by_stage(stage, track, 8, ScheduleKind::kOneForwardOneBackward),
              kStages - stage);
    EXPECT_EQ(held_by_stage(stage, track, 2, ScheduleKind::kOneForwardOneBackward),
              std::min(2, kStages - stage));
  }
}

TEST(BalanceFlight, WeightGradientsHoldTheirInputsUntilTheyAreDone) {
  for (int stage = 0; stage < kStages; ++stage) {
    TrackProfile track = one_byte(stage);
    EXPECT_EQ(held_by_stage(stage, track, 8, ScheduleKind::kZeroBubble), kStages - stage);
    track.profile.level = {1, 1, 0};
    track.profile.weight_bytes = {1};
    EXPECT_EQ(held_by_stage(stage, track, 8, ScheduleKind::kZeroBubble), kStages);
  }
}

TEST(BalanceFlight, ASkipIsHeldFromTheMomentThatItIsSent) {
  TrackProfile track = one_byte(kStages - 1);
  track.profile.arrivals.push_back({0, true, 0, 100});
  const double early = held_by_stage(kStages - 1, track, 8, ScheduleKind::kOneForwardOneBackward);
  track.profile.arrivals[0].from = kStages - 2;
  const double late = held_by_stage(kStages - 1, track, 8, ScheduleKind::kOneForwardOneBackward);
  EXPECT_GT(early, late + 100);
  EXPECT_LE(early, 8 * 100 + 1);
}

TEST(BalanceFlight, WhatWasSentIsThereUntilTheNextTaskBegins) {
  TrackProfile track = one_byte(0);
  track.profile.sent[0] = 10;
  EXPECT_EQ(held_by_stage(0, track, 1, ScheduleKind::kOneForwardOneBackward), 1 + 10);
}

TEST(BalanceFlight, MirroredMicroBatchesAreAtTheOtherEnd) {
  TrackProfile first = one_byte(0), last = one_byte(kStages - 1);
  last.profile.peak = {50, 50, 0};
  first.profile.fixed_bytes = 1000;
  last.profile.fixed_bytes = 2000;
  const Flights flights(stages_in_turn(kStages, kStages), {{0}, {kStages - 1}}, 2,
                        ScheduleKind::kGems);
  EXPECT_EQ(flights.bytes({&first, &last}, unit_per_chunk(kStages)), 3000 + 50);
}

TEST(BalanceFlight, SegmentsMustLeaveRoomForTheOthers) {
  TrackProfile track = one_byte(0);
  const auto is_possible = [&](int stage, int begin, int end) {
    track.segments = {{begin, end}};
    return std::isfinite(held_by_stage(stage, track, 2, ScheduleKind::kOneForwardOneBackward));
  };
  EXPECT_TRUE(is_possible(0, 0, 1));
  EXPECT_FALSE(is_possible(0, 0, 2));  // two units for three stages
  EXPECT_FALSE(is_possible(0, 1, 2));  // nobody has unit 0
  EXPECT_TRUE(is_possible(2, 2, 3));
  EXPECT_FALSE(is_possible(3, 2, 3));
  const Flights middle({0, 1, 2}, {{1}}, 2, ScheduleKind::kGems);  // it is its own mirror
  EXPECT_FALSE(std::isfinite(middle.bytes({&track, &track}, unit_per_chunk(3))));
}

}  // namespace
}  // namespace tessera::balance_flight_test
