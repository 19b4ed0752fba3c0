#include "tessera/train/early_stopping.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/unit/refusal.h"

namespace tessera::early_stopping_test {
namespace {

using Mode = EarlyStopping::Mode;
using Verdict = EarlyStopping::Verdict;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The number of values taken until it stops; -1 where it does not.
int stops_after(EarlyStopping stopping, const std::vector<double>& values) {
  int taken = 0;
  for (double value : values) {
    stopping.update(value);
    ++taken;
    if (stopping.should_stop()) return taken;
  }
  return -1;
}

TEST(EarlyStopping, StopsAfterPatienceValuesWithoutImprovement) {
  EXPECT_EQ(stops_after(EarlyStopping({.patience = 2}), {3, 2, 2.5, 1, 1, 1, 1}), 6);
  EXPECT_EQ(stops_after(EarlyStopping({.patience = 1}), {3, 2, 1, 0}), -1);
  EXPECT_EQ(stops_after(EarlyStopping({.patience = 2, .mode = Mode::kMax}), {3, 2, 1, 0}), 3);
  EXPECT_EQ(stops_after(EarlyStopping({.patience = 0}), {1, 2, 3, 4, 5}), -1);
}

TEST(EarlyStopping, SmallChangesAreNoImprovement) {
  EarlyStopping stopping({.patience = 3, .min_delta = 0.5});
  EXPECT_EQ(stopping.update(2), Verdict::kImproved);
  EXPECT_EQ(stopping.update(1.6), Verdict::kNotImproved);
  EXPECT_EQ(stopping.update(1.5), Verdict::kNotImproved) << "exactly min_delta is not more";
  EXPECT_EQ(stopping.update(1.4), Verdict::kImproved);
  EXPECT_EQ(stopping.state().best, 1.4);
}

TEST(EarlyStopping, NanNeverImproves) {
  EXPECT_EQ(stops_after(EarlyStopping({.patience = 2}), {kNaN, kNaN}), 2);
  EarlyStopping stopping({.patience = 2, .mode = Mode::kMax});
  EXPECT_EQ(stopping.update(kNaN), Verdict::kNotImproved);
  EXPECT_EQ(stopping.update(-5), Verdict::kImproved);
  EXPECT_EQ(stopping.update(kNaN), Verdict::kNotImproved);
  EXPECT_EQ(stopping.state().best, -5);
}

TEST(EarlyStopping, ItsStateContinuesElsewhere) {
  const std::vector<double> values{3, 2, 2, 2.1, 1.9, 2, 2, 2};
  for (size_t cut = 0; cut < values.size(); ++cut) {
    EarlyStopping whole({.patience = 3}), first({.patience = 3}), second({.patience = 3});
    for (size_t i = 0; i < values.size(); ++i) {
      whole.update(values[i]);
      if (i == cut) second.load_state(first.state());
      (i < cut ? first : second).update(values[i]);
    }
    EXPECT_EQ(second.state(), whole.state()) << "cut at " << cut;
    EXPECT_TRUE(second.should_stop());
  }
}

TEST(EarlyStopping, RefusesNegativeOptions) {
  expect_refusal([] { EarlyStopping({.patience = -1}); }, "patience -1");
  expect_refusal([] { EarlyStopping({.min_delta = -0.1}); }, "min_delta -0.1");
  expect_refusal([] { EarlyStopping({.min_delta = kNaN}); }, "min_delta nan");
}

}  // namespace
}  // namespace tessera::early_stopping_test
