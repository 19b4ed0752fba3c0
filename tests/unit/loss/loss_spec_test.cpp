// What users may write for a loss, and what they read where it is wrong.

#include "tessera/loss/loss_spec.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera::loss_spec_test {
namespace {

template <class Options>
Options only_term(const std::string& text) {
  const LossSpec spec = parse_loss(text);
  EXPECT_EQ(spec.terms.size(), 1u) << text;
  return std::get<Options>(spec.terms.at(0).options);
}

TEST(LossSpec, DefaultsAreThoseOfTheOperators) {
  EXPECT_EQ(only_term<CrossEntropyOptions>("cross_entropy").ignore_index, -100);
  EXPECT_TRUE(only_term<BinaryCrossEntropyOptions>("bce").pos_weight.empty());
  const auto dice = only_term<DiceOptions>("dice");
  EXPECT_EQ(dice.smooth, DiceOptions{}.smooth);
  EXPECT_EQ(dice.average, DiceOptions{}.average);
  EXPECT_EQ(dice.squared_denominator, DiceOptions{}.squared_denominator);
  EXPECT_EQ(dice.include_background, DiceOptions{}.include_background);
  EXPECT_TRUE(parse_loss("dice").terms[0].activation_by_target);
  const auto focal = only_term<FocalOptions>("focal");
  EXPECT_EQ(focal.gamma, FocalOptions{}.gamma);
  EXPECT_EQ(focal.alpha, FocalOptions{}.alpha);
  EXPECT_EQ(focal.form, FocalOptions{}.form);
  EXPECT_EQ(only_term<MeanSquaredErrorOptions>("mse").weight, 1);
  EXPECT_EQ(only_term<MeanAbsoluteErrorOptions>("l1").weight, 1);
  EXPECT_EQ(only_term<SmoothL1Options>("smooth_l1").beta, SmoothL1Options{}.beta);
  EXPECT_EQ(only_term<HuberOptions>("huber").delta, HuberOptions{}.delta);
}

TEST(LossSpec, WeightsOfClassesMayComeFromTheLabels) {
  for (const char* text :
       {"cross_entropy:class_weights=auto", "focal:form=softmax,class_weights=auto"})
    EXPECT_TRUE(parse_loss(text).terms[0].weights_by_labels) << text;
  EXPECT_FALSE(parse_loss("cross_entropy:class_weights=1/2").terms[0].weights_by_labels);
  EXPECT_THROW(parse_loss("cross_entropy:class_weights=automatic"), InvalidInput);
  EXPECT_THROW(parse_loss("focal:class_weights=auto"), InvalidInput);
}

TEST(LossSpec, ReadsEveryOption) {
  const auto entropy = only_term<CrossEntropyOptions>(
      "cross_entropy:class_weights=1/2/0.5,ignore_index=255,label_smoothing=0.1");
  EXPECT_EQ(entropy.class_weights, (std::vector<double>{1, 2, 0.5}));
  EXPECT_EQ(entropy.ignore_index, 255);
  EXPECT_EQ(entropy.label_smoothing, 0.1);
  const auto bce = only_term<BinaryCrossEntropyOptions>("bce:pos_weight=3,ignore_index=-1");
  EXPECT_EQ(bce.pos_weight, (std::vector<double>{3}));
  EXPECT_EQ(bce.ignore_index, -1);
  const auto dice = only_term<DiceOptions>(
      "dice:activation=softmax,smooth=1,squared_denominator=yes,average=batch,"
      "include_background=no,ignore_index=0");
  EXPECT_EQ(dice.activation, DiceOptions::Activation::kSoftmax);
  EXPECT_EQ(dice.smooth, 1);
  EXPECT_TRUE(dice.squared_denominator);
  EXPECT_EQ(dice.average, DiceOptions::Average::kBatch);
  EXPECT_FALSE(dice.include_background);
  EXPECT_EQ(dice.ignore_index, 0);
  const auto focal =
      only_term<FocalOptions>("focal:gamma=1.5,form=softmax,class_weights=1/2,ignore_index=9");
  EXPECT_EQ(focal.gamma, 1.5);
  EXPECT_EQ(focal.form, FocalOptions::Form::kSoftmax);
  EXPECT_EQ(focal.class_weights, (std::vector<double>{1, 2}));
  EXPECT_EQ(only_term<FocalOptions>("focal:alpha=0.25").alpha, 0.25);
  EXPECT_EQ(only_term<SmoothL1Options>("smooth_l1:beta=0").beta, 0);
  EXPECT_EQ(only_term<HuberOptions>("huber:delta=0.5").delta, 0.5);
}

TEST(LossSpec, TermsHaveFactorsAndMayHaveSpaces) {
  const LossSpec spec = parse_loss("0.5*bce + 1e-1*dice:average=batch+focal");
  ASSERT_EQ(spec.terms.size(), 3u);
  EXPECT_EQ(spec.terms[0].name, "bce");
  EXPECT_EQ(std::get<BinaryCrossEntropyOptions>(spec.terms[0].options).weight, 0.5);
  EXPECT_EQ(std::get<DiceOptions>(spec.terms[1].options).weight, 0.1);
  EXPECT_EQ(std::get<DiceOptions>(spec.terms[1].options).average, DiceOptions::Average::kBatch);
  EXPECT_EQ(std::get<FocalOptions>(spec.terms[2].options).weight, 1);
}

TEST(LossSpec, KnowsWhichTargetsATermTakes) {
  const auto kind = [](const std::string& text) { return parse_loss(text).terms[0].target; };
  EXPECT_EQ(kind("cross_entropy"), TargetKind::kLabels);
  EXPECT_EQ(kind("focal:form=softmax"), TargetKind::kLabels);
  EXPECT_EQ(kind("dice"), TargetKind::kEither);
  EXPECT_EQ(kind("dice:target=real"), TargetKind::kReal);
  EXPECT_EQ(kind("bce:target=labels"), TargetKind::kLabels);
  for (const char* text : {"mse", "l1", "smooth_l1", "huber"})
    EXPECT_EQ(kind(text), TargetKind::kReal) << text;
}

void expect_refusal(const std::string& text, const std::string& part) {
  try {
    parse_loss(text);
    ADD_FAILURE() << "'" << text << "' was taken";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
        << "'" << text << "' gave '" << error.what() << "', without '" << part << "'";
  }
}

TEST(LossSpec, RefusesWithTheLegalValues) {
  const std::string known = "known: cross_entropy, bce, dice, focal, mse, l1, smooth_l1, huber";
  for (const char* text : {"", "+", "bce+", "entropy", "dice;average=batch", "2*", "DICE"})
    expect_refusal(text, known);
  expect_refusal("x*dice", "[loss dice] the factor 'x' must be a number, such as 0.5*dice");
  expect_refusal("*dice", "the factor ''");
  expect_refusal("inf*dice", "the factor 'inf'");
  expect_refusal("1e+3*dice", known);
  expect_refusal("dice:",
                 "[loss dice] nothing follows the ':'; write key=value; legal: activation, ");
  expect_refusal("dice:gamma=2", "[loss dice] has no option 'gamma'; legal: activation, smooth");
  expect_refusal("mse:beta=1", "[loss mse] has no option 'beta'; it takes none");
  expect_refusal("dice:average", "'average' is not an option; write key=value");
  expect_refusal("dice:average=", "'average=' is not an option");
  expect_refusal("dice:smooth=1,smooth=2", "option 'smooth' is given twice");
  expect_refusal("dice:average=all", "average=all must be one of: sample, batch");
  expect_refusal("dice:smooth=-1", "smooth=-1 must be a number from 0 to");
  expect_refusal("dice:smooth=nan", "smooth=nan must be a number");
  expect_refusal("dice:include_background=true", "must be one of: yes, no");
  expect_refusal("bce:ignore_index=1.5", "ignore_index=1.5 must be an integer");
  expect_refusal("bce:pos_weight=1//2", "must be numbers from 0 to");
  expect_refusal("focal:form=softmax,target=real", "use form=sigmoid");
}

TEST(LossSpec, HelpNamesEveryTermAndKey) {
  const std::string help = loss_help();
  for (const char* word : {"cross_entropy ", "bce ", "dice ", "focal ", "mse ", "l1 ", "smooth_l1 ",
                           "huber ", "gamma=2", "average=sample", "class_weights=...", "delta=1"})
    EXPECT_NE(help.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace tessera::loss_spec_test
