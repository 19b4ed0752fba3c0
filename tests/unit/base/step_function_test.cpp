#include "tessera/base/step_function.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.h"

namespace tessera::step_function_test {
namespace {

TEST(StepFunction, StartsAtItsStep) {
  const StepFunction weight(0.25, 10);
  EXPECT_EQ(weight.at(9), 0);
  EXPECT_EQ(weight.at(10), 0.25);
  EXPECT_EQ(weight.at(1'000'000), 0.25);
}

TEST(StepFunction, GrowsAlongTheCurveOfThePaper) {
  const StepFunction lambda(2, 100, 1000);
  EXPECT_EQ(lambda.at(99), 0);
  EXPECT_EQ(lambda.at(100), 0);
  EXPECT_NEAR(lambda.at(350), 2 * (2 / (1 + std::exp(-2.5)) - 1), 1e-15);
  EXPECT_EQ(lambda.at(1100), lambda.at(5000));
  EXPECT_NEAR(lambda.at(1100), 2 * std::tanh(5), 1e-15);
}

TEST(StepFunction, IsWrittenAsPeopleSayIt) {
  EXPECT_EQ(to_string(StepFunction(0.25)), "0.25");
  EXPECT_EQ(to_string(StepFunction(1, 10, 20)), "1 from step 10 within 20 steps");
}

TEST(StepFunction, IsRefusedWhereItIsNone) {
  EXPECT_THROW(check_step_function(StepFunction(NAN), "weight"), InvalidInput);
  EXPECT_THROW(check_step_function(StepFunction(1, -1), "weight"), InvalidInput);
  EXPECT_THROW(check_step_function(StepFunction(1, 0, -1), "weight"), InvalidInput);
}

}  // namespace
}  // namespace tessera::step_function_test
