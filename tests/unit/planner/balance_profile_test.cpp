#include "tessera/planner/balance_profile.h"

#include <gtest/gtest.h>

namespace tessera::balance_profile_test {
namespace {

using Bytes = std::vector<double>;

/// A chain of units: unit i makes value i of 10^i bytes from value i - 1, keeps what it reads for
/// its backward, and makes the gradient of what it reads, of twice as many bytes.
StepTable chain(int num_units) {
  StepTable table;
  table.num_units = num_units;
  table.fixed_of_unit.resize(num_units);
  for (auto& of_kind : table.steps) of_kind.resize(num_units);
  table.buffers.resize(2 * num_units);
  double bytes = 1;
  for (int unit = 0; unit < num_units; ++unit, bytes *= 10) {
    const int gradient = num_units + unit;
    table.buffers[unit] = {bytes, bytes, unit, unit, true, -1, false, {unit}};
    table.buffers[gradient] = {2 * bytes, 2 * bytes, unit + 1, unit + 1, false, -1, false, {unit}};
    std::vector<int> forward{unit}, backward{gradient};
    if (unit > 0) {
      forward.push_back(unit - 1);
      backward.insert(backward.end(), {unit - 1, gradient - 1});
      table.buffers[unit - 1].units.push_back(unit);
      table.buffers[gradient - 1].units.push_back(unit);
    }
    table.steps[0][unit].push_back({forward});
    table.steps[1][unit].push_back({backward});
  }
  return table;
}

TEST(BalanceProfile, BuffersLiveFromFirstToLastTouch) {
  StepTable table = chain(3);
  table.buffers[5].made_by = table.buffers[5].made_for = 2;
  Profiler profiler(table);
  for (int round = 0; round < 2; ++round) {  // nothing of the last is left
    const StageProfile& whole = profiler.profile({{0, 3}});
    EXPECT_EQ(whole.peak, (Bytes{111, 231, 0}));  // 0 1 2, then 0 1 and the gradients of 1 and 2
    EXPECT_EQ(whole.level, (Bytes{11, 0, 0}));
    EXPECT_EQ(whole.sent, (Bytes{0, 0, 0}));
    EXPECT_TRUE(whole.arrivals.empty());
  }
}

TEST(BalanceProfile, WhatComesAndGoesIsHeldByBoth) {
  const StepTable table = chain(4);
  Profiler profiler(table);
  const StageProfile& middle = profiler.profile({{1, 3}});
  EXPECT_EQ(middle.peak, (Bytes{111, 11 + 220, 0}));
  EXPECT_EQ(middle.level, (Bytes{11, 0, 0}));
  EXPECT_EQ(middle.sent, (Bytes{100, 2, 0}));  // value 2, the gradient of value 0
  ASSERT_EQ(middle.arrivals.size(), 2u);
  EXPECT_EQ(middle.arrivals[0].from, 0);
  EXPECT_TRUE(middle.arrivals[0].forward);
  EXPECT_EQ(middle.arrivals[0].task, 0);
  EXPECT_EQ(middle.arrivals[0].bytes, 1);
  EXPECT_EQ(middle.arrivals[1].from, 3);
  EXPECT_FALSE(middle.arrivals[1].forward);
  EXPECT_EQ(middle.arrivals[1].task, 1);
  EXPECT_EQ(middle.arrivals[1].bytes, 200);
}

TEST(BalanceProfile, PartsOfOneStageKeepWhatTheyShare) {
  StepTable table = chain(4);
  table.steps[0][3][0].buffers.push_back(0);  // a skip
  table.buffers[0].units.push_back(3);
  Profiler profiler(table);
  const StageProfile& ring = profiler.profile({{0, 1}, {3, 4}});
  EXPECT_EQ(ring.level[0], 1);  // the skip stays
  ASSERT_EQ(ring.arrivals.size(), 3u);
  const StageProfile& last = profiler.profile({{3, 4}});
  EXPECT_EQ(last.arrivals.size(), 3u);  // ... or comes, with value 2
}

TEST(BalanceProfile, FixedThingsAreCountedOnce) {
  StepTable table = chain(3);
  table.fixed_bytes = {5, 7};
  table.reduction_bytes.assign(table.fixed_bytes.size(), 0);
  table.fixed_of_unit = {{0}, {0, 1}, {}};
  Profiler profiler(table);
  EXPECT_EQ(profiler.profile({{0, 2}}).fixed_bytes, 12);
  EXPECT_EQ(profiler.profile({{0, 1}}).fixed_bytes, 5);
  EXPECT_EQ(profiler.profile({{2, 3}}).fixed_bytes, 0);
}

/// Unit 0 makes a value that is computed again for unit 1's backward.
StepTable recomputation(double message_bytes) {
  StepTable table = chain(2);
  table.buffers.push_back({1, message_bytes, 0, 1, false, 0, false, {0, 1}});
  table.buffers[0].message_bytes = message_bytes;
  table.steps[1][1] = {{{4}, 0}, {{4, 2}}};
  return table;
}

TEST(BalanceProfile, WhatCannotBeComputedAgainIsKept) {
  const StepTable table = recomputation(1);
  Profiler profiler(table);
  EXPECT_EQ(profiler.profile({{0, 2}}).level[0], 0);
  EXPECT_EQ(profiler.profile({{1, 2}}).level[0], 1);
  EXPECT_EQ(profiler.profile({{1, 2}}).peak[1], 3);  // with the gradient, which is sent
}

TEST(BalanceProfile, MarginsAreAddedToWhatCame) {
  const StepTable table = recomputation(0.75);
  Profiler profiler(table);
  const StageProfile& last = profiler.profile({{1, 2}});
  EXPECT_EQ(last.peak[0], 10 + 1 + 0.75);  // both, while one is put into the other
  EXPECT_EQ(last.level[0], 0.75);          // what came is kept ...
  EXPECT_EQ(last.peak[1], 1 + 0.75 + 2);   // ... and put into margins again
}

TEST(BalanceProfile, AGradientIsSummedWhereItIsUsed) {
  StepTable table = chain(3);  // unit 2 reads value 0, too, and unit 1 adds to its gradient
  table.buffers.push_back({2, 2, 1, 1, false, -1, false, {1, 0}});
  const int part = 6, sum = 3;
  table.buffers[sum].made_by = table.buffers[sum].made_for = 2;
  table.buffers[sum].units = {2, 0};
  table.steps[1][2].push_back({{sum}});
  table.steps[1][1] = {{{0, 4, part}}, {{part, sum}, 0}};
  table.steps[1][0] = {{{part, sum}, kNoUnit, 1}, {{sum}}};
  Profiler profiler(table);
  EXPECT_EQ(profiler.profile({{1, 2}}).peak[1], 1 + 20 + 2);  // its part alone
  EXPECT_EQ(profiler.profile({{0, 1}}).peak[1], 2 + 2);       // both have come
  EXPECT_EQ(profiler.profile({{0, 2}}).peak[1], 1 + 20 + 2 + 2);
}

}  // namespace
}  // namespace tessera::balance_profile_test
