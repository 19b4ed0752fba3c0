#include "tessera/proof/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera::comparison_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor numbers(const std::vector<double>& list) { return at::tensor(list, at::kDouble); }

TEST(Comparison, IsRelativeToTheLargestElementOfTheTensor) {
  Comparison gradients("gradient of");
  gradients.add("a", numbers({100.5}), numbers({100}));  // more than b, but not for its size
  gradients.add("b", numbers({-2, 0.7}), numbers({-2, 0.5}));
  gradients.add("c", numbers({3}), numbers({3}));
  std::string where;
  EXPECT_NEAR(gradients.worst(&where), 0.1, 1e-12);
  EXPECT_EQ(where, "gradient of b");
}

TEST(Comparison, SmallTensorsAreJudgedByAThousandthOfTheLargest) {
  Comparison gradients("gradient of");
  gradients.add("weight", numbers({4000}), numbers({4000}));
  gradients.add("bias", numbers({1e-3}), numbers({0}));
  std::string where;
  EXPECT_DOUBLE_EQ(gradients.largest_scale(), 4000);
  EXPECT_DOUBLE_EQ(gradients.worst(&where), 1e-3 / 4);
  EXPECT_EQ(where, "gradient of bias");
  EXPECT_DOUBLE_EQ(gradients.worst(&where, /*least_scale=*/10), 1e-4);
  EXPECT_DOUBLE_EQ(gradients.worst(&where, /*least_scale=*/1), 1e-3 / 4);
}

TEST(Comparison, WithoutAnyScaleZerosMustBeMet) {
  Comparison exact("output"), off("output");
  exact.add("y", numbers({0, 0}), numbers({0, 0}));
  off.add("y", numbers({0, 1e-300}), numbers({0, 0}));
  std::string where;
  EXPECT_EQ(exact.worst(&where), 0);
  EXPECT_EQ(off.worst(&where), kInfinity);
}

TEST(Comparison, NanIsInfinitelyWrongWhoeverHasIt) {
  for (const auto& [ours, reference] :
       {std::pair{NAN, 1.0}, {1.0, NAN}, {NAN, NAN}, {kInfinity, kInfinity}, {1.0, kInfinity}}) {
    Comparison outputs("output");
    outputs.add("wrong", numbers({2}), numbers({1}));
    outputs.add("lost", numbers({1, ours}), numbers({1, reference}));
    outputs.add("right", numbers({1}), numbers({1}));
    std::string where;
    EXPECT_EQ(outputs.worst(&where), kInfinity) << ours << " for " << reference;
    EXPECT_EQ(where, "output lost");
  }
}

TEST(Comparison, PassesOverReferencesThatAreNotThere) {
  Comparison gradients("gradient of");
  gradients.add("buffer", numbers({1}), at::Tensor());
  gradients.add("empty", numbers({}), numbers({}));
  std::string where = "nowhere";
  EXPECT_EQ(gradients.worst(&where), 0);
  EXPECT_EQ(where, "nowhere");
  EXPECT_EQ(gradients.largest_scale(), 0);
}

TEST(L2Difference, IsThatOfAllTensorsTogether) {
  EXPECT_DOUBLE_EQ(l2_difference({numbers({3, 0}), at::Tensor(), numbers({4.5})},
                                 {numbers({3, 0}), at::Tensor(), numbers({4})}),
                   0.1);
  EXPECT_DOUBLE_EQ(l2_difference({numbers({3, 4})}, {numbers({0, 0})}), 5);
}

TEST(L2Difference, AddsUpInDoublePrecision) {
  const at::Tensor reference = at::ones({1000}, at::kFloat) * 1e-30;  // its square is no float32
  EXPECT_NEAR(l2_difference({reference * 1.5}, {reference}), 0.5, 1e-6);
}

}  // namespace
}  // namespace tessera::comparison_test
