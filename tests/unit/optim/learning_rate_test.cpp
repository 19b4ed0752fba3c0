// Schedules against the formulas by which PyTorch documents its own.

#include "tessera/optim/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/refusal.h"

namespace tessera::learning_rate_test {
namespace {

constexpr double kPi = 3.141592653589793;

TEST(LearningRate, Constant) {
  const LearningRate rate({.learning_rate = 0.3, .total_steps = 10});
  for (int64_t step : {0, 5, 9, 10, 1000}) EXPECT_EQ(rate.at(step), 0.3);
}

TEST(LearningRate, StepDropsEveryFewEpochs) {
  const LearningRate rate({.schedule = Schedule::kStep,
                           .learning_rate = 0.8,
                           .total_steps = 100,
                           .steps_per_epoch = 5,
                           .step_epochs = 2,
                           .gamma = 0.5});
  EXPECT_EQ(rate.at(0), 0.8);
  EXPECT_EQ(rate.at(9), 0.8);
  EXPECT_EQ(rate.at(10), 0.4);
  EXPECT_EQ(rate.at(19), 0.4);
  EXPECT_EQ(rate.at(20), 0.2);
  EXPECT_EQ(rate.at(99), 0.8 * std::pow(0.5, 9));
}

TEST(LearningRate, ExponentialFallsWithEveryEpoch) {
  const LearningRate rate({.schedule = Schedule::kExponential,
                           .learning_rate = 0.3,
                           .total_steps = 20,
                           .steps_per_epoch = 4,
                           .gamma = 0.7});
  const double expected[] = {0.3, 0.21, 0.147, 0.1029, 0.07203};  // of ExponentialLR
  for (int64_t step = 0; step < 20; ++step)
    EXPECT_NEAR(rate.at(step), expected[step / 4], 1e-16) << step;
}

TEST(LearningRate, PolyFallsToNothing) {
  const LearningRate rate(
      {.schedule = Schedule::kPoly, .learning_rate = 0.3, .total_steps = 8, .power = 0.9});
  // Of PolynomialLR(total_iters=8, power=0.9), which multiplies the last rate in each step.
  const double expected[] = {0.3,
                             0.2660287062771622,
                             0.2315668520170711,
                             0.19652294802542958,
                             0.16076601938044396,
                             0.12409360339748286,
                             0.08615237662477761,
                             0.04616791550043435,
                             0,
                             0};
  for (int64_t step = 0; step < 10; ++step) EXPECT_NEAR(rate.at(step), expected[step], 1e-15);
  const LearningRate late({.schedule = Schedule::kPoly,
                           .learning_rate = 0.3,
                           .total_steps = 10,
                           .warmup_steps = 2,
                           .power = 0.9});
  EXPECT_NEAR(late.at(0), 0.1, 1e-16);
  for (int64_t step = 0; step < 8; ++step) EXPECT_EQ(late.at(step + 2), rate.at(step));
}

TEST(LearningRate, Cosine) {
  const LearningRate rate({.schedule = Schedule::kCosine,
                           .learning_rate = 0.1,
                           .total_steps = 40,
                           .min_learning_rate = 0.001});
  for (int64_t step = 0; step <= 40; ++step)
    EXPECT_NEAR(rate.at(step),
                0.001 + 0.099 * (1 + std::cos(kPi * static_cast<double>(step) / 40)) / 2, 1e-16);
  EXPECT_EQ(rate.at(0), 0.1);
  EXPECT_NEAR(rate.at(20), 0.0505, 1e-15);
  EXPECT_NEAR(rate.at(41), 0.001, 1e-18) << "beyond the end it must not climb again";
}

/// The recipe of OneCycleLR, written as it is documented: two phases, given by their last step.
double one_cycle(double peak, int64_t total, double pct_start, double div, double final_div,
                 int64_t step) {
  const double start = peak / div, end = start / final_div;
  const double first_end = pct_start * static_cast<double>(total) - 1;
  const double second_end = static_cast<double>(total) - 1;
  const auto blend = [](double from, double to, double fraction) {
    return to + (from - to) / 2.0 * (std::cos(kPi * fraction) + 1);
  };
  const auto now = static_cast<double>(step);
  return now <= first_end ? blend(start, peak, now / first_end)
                          : blend(peak, end, (now - first_end) / (second_end - first_end));
}

TEST(LearningRate, OneCycle) {
  for (double pct_start : {0.1, 0.25, 0.3, 0.77})
    for (int64_t total : {20, 33, 101}) {
      const LearningRate rate({.schedule = Schedule::kOneCycle,
                               .learning_rate = 0.5,
                               .total_steps = total,
                               .pct_start = pct_start,
                               .div_factor = 10,
                               .final_div_factor = 100});
      for (int64_t step = 0; step < total; ++step)
        EXPECT_NEAR(rate.at(step), one_cycle(0.5, total, pct_start, 10, 100, step), 1e-15)
            << "pct_start " << pct_start << " step " << step << "/" << total;
      EXPECT_NEAR(rate.at(0), 0.05, 1e-15);
      EXPECT_NEAR(rate.at(total - 1), 0.0005, 1e-15);
      EXPECT_EQ(rate.at(total), rate.at(total - 1));
    }
}

TEST(LearningRate, OneCycleWithoutOneOfItsPhasesStaysFinite) {
  for (int64_t total : {1, 2, 3, 10})
    for (double pct_start : {0.0, 0.1, 0.5, 1.0}) {
      const LearningRate rate({.schedule = Schedule::kOneCycle,
                               .learning_rate = 0.5,
                               .total_steps = total,
                               .pct_start = pct_start});
      for (int64_t step = 0; step < total; ++step) {
        EXPECT_TRUE(std::isfinite(rate.at(step))) << total << " " << pct_start << " " << step;
        EXPECT_GE(rate.at(step), 0);
        EXPECT_LE(rate.at(step), 0.5);
      }
    }
}

TEST(LearningRate, WarmUpClimbsBeforeAnySchedule) {
  for (Schedule schedule :
       {Schedule::kConstant, Schedule::kStep, Schedule::kCosine, Schedule::kOneCycle}) {
    LearningRateOptions options{.schedule = schedule, .learning_rate = 0.1, .total_steps = 20};
    const LearningRate plain(options);
    options.warmup_steps = 4;
    options.total_steps = 24;
    const LearningRate warm(options);
    for (int64_t step = 0; step < 4; ++step)
      EXPECT_NEAR(warm.at(step), plain.at(0) * static_cast<double>(step + 1) / 5, 1e-17);
    for (int64_t step = 4; step < 24; ++step) EXPECT_EQ(warm.at(step), plain.at(step - 4));
  }
}

TEST(LearningRate, RefusesWhatMakesNoSchedule) {
  const auto with = [](const LearningRateOptions& options) {
    return [=] { LearningRate rate(options); };
  };
  expect_refusal(with({.learning_rate = -0.1}), "learning rate -0.1");
  expect_refusal(with({.learning_rate = std::numeric_limits<double>::quiet_NaN()}), "nan");
  expect_refusal(with({.total_steps = 0}), "total steps 0 must be at least 1");
  expect_refusal(with({.total_steps = 5, .warmup_steps = 5}), "use at most 4");
  expect_refusal(with({.total_steps = 5, .warmup_steps = -1}), "warm-up steps -1");
  expect_refusal(with({.step_epochs = 0}), "step size in epochs 0");
  expect_refusal(with({.pct_start = 1.5}), "pct_start 1.5 must be from 0 to 1");
  expect_refusal(with({.div_factor = 0}), "div_factor 0");
  expect_refusal(
      with({.schedule = Schedule::kCosine, .learning_rate = 0.1, .min_learning_rate = 0.2}),
      "min learning rate 0.2");
}

}  // namespace
}  // namespace tessera::learning_rate_test
