// The verdict alone, on differences that are made up.

#include "tessera/proof/judgement.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::judgement_test {
namespace {

Graph one_weight() {
  Graph graph;
  graph.add_input("image", ValueType::image({1, 1, 4}));
  graph.mark_output(0);
  graph.add_parameter({"weight", {4}, ParameterRole::kTrainable, {}});
  return graph;
}

/// A step in which everything is off by `difference`, relative to ones; the loss is right.
StepComparison step_off_by(double difference) {
  const at::Tensor ones = at::ones({4}, at::kDouble);
  const auto off = [difference](size_t, const at::Tensor& reference) {
    Deviation deviation;
    deviation.add(reference + difference, reference);
    return deviation;
  };
  return {one_weight(), StepTensors{1, {}, {ones}, {ones}, {ones}, {ones}},
          StepComparison::Source{1, {}, off, off, off, off}};
}

VerifyReport strictly(const std::vector<double>& differences, const VerifyOptions& options = {}) {
  std::vector<StepComparison> steps;
  for (double difference : differences) steps.push_back(step_off_by(difference));
  VerifyReport report;
  judge_strictly(steps, options, &report);
  return report;
}

/// `roundings`: what one rounding does in each step, in the better of two draws.
VerifyReport by_conditioning(const std::vector<double>& differences,
                             const std::vector<double>& roundings,
                             const VerifyOptions& options = {}) {
  std::vector<StepComparison> steps;
  std::vector<Conditioning> measured;
  for (size_t i = 0; i < differences.size(); ++i) {
    steps.push_back(step_off_by(differences[i]));
    measured.push_back({step_off_by(roundings[i] / 100), step_off_by(roundings[i])});
  }
  VerifyReport report;
  judge_by_conditioning(steps, measured, options, &report);
  return report;
}

TEST(Judgement, TheFixedLimitIsTheSameInAllSteps) {
  EXPECT_TRUE(strictly({9e-11, 9e-11}).ok);
  const VerifyReport late = strictly({0, 3e-10});
  EXPECT_FALSE(late.ok);
  EXPECT_NE(late.failure.find("at step 1: 3.00e-10, the limit is 1.00e-10"), std::string::npos)
      << late.failure;
  EXPECT_FALSE(strictly({3e-10, 0}).ok);
  EXPECT_FALSE(strictly({NAN}).ok);
}

TEST(Judgement, TheWorstBeyondItsLimitIsNamed) {
  const VerifyReport report = strictly({2e-9, 5e-9, 1e-9});
  EXPECT_NE(report.failure.find("at step 1"), std::string::npos) << report.failure;
  EXPECT_NEAR(report.output_rel, 5e-9, 1e-12);
}

TEST(Judgement, TwentyRoundingsAreRounding) {
  const VerifyReport report = by_conditioning({1e-12, 1.9e-9}, {1e-13, 1e-10});
  EXPECT_TRUE(report.ok) << report.failure;
  EXPECT_FALSE(report.sensitivities[0].raises_limits);
  EXPECT_TRUE(report.sensitivities[1].raises_limits);
  EXPECT_NEAR(report.sensitivities[1].gradient, 1e-10, 1e-14);
  EXPECT_FALSE(by_conditioning({1e-12, 2.1e-9}, {1e-13, 1e-10}).ok);
}

/// A later step that moves far does not excuse an earlier one.
TEST(Judgement, EachStepHasItsOwnLimit) {
  const VerifyReport report = by_conditioning({2e-10, 1e-9}, {1e-12, 1e-10});
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.failure.find("at step 0: 2.00e-10, the limit is 1.00e-10"), std::string::npos)
      << report.failure;
}

TEST(Judgement, MeasuringNeverLowersALimit) { EXPECT_TRUE(by_conditioning({9e-11}, {0}).ok); }

TEST(Judgement, WhereRoundingHidesEverythingNothingIsSaid) {
  const VerifyReport report = by_conditioning({1e-12, 2e-3}, {1e-13, 1e-3});
  EXPECT_FALSE(report.ok);
  EXPECT_TRUE(report.undecided);
  const VerifyReport wrong = by_conditioning({1e-12, 0.5}, {1e-13, 1e-3});
  EXPECT_FALSE(wrong.ok || wrong.undecided) << "more than rounding does";
  const VerifyReport both = by_conditioning({1e-9, 2e-3}, {1e-13, 1e-3});
  EXPECT_FALSE(both.ok || both.undecided) << "the first step is wrong";
  EXPECT_TRUE(by_conditioning({1e-12, 9e-5}, {1e-13, 1e-3}).ok) << "it need not be raised so far";
}

TEST(Judgement, InFloat32LossAndOutputsAreJudged) {
  VerifyOptions options;
  options.real = at::kFloat;
  EXPECT_TRUE(strictly({9e-5}, options).ok);
  EXPECT_FALSE(strictly({2e-4}, options).ok);
  const VerifyReport report = by_conditioning({1e-3}, {1e-4}, options);
  EXPECT_TRUE(report.ok) << report.failure;
  EXPECT_EQ(report.sensitivities[0].most, "output image");
}

}  // namespace
}  // namespace tessera::judgement_test
