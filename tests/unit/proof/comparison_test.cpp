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

TEST(Comparison, L2IsThatOfAllTensorsTogether) {
  Comparison gradients("gradient of"), of_zeros("gradient of");
  gradients.add("a", numbers({3, 0}), numbers({3, 0}));
  gradients.add("buffer", at::Tensor(), at::Tensor());
  gradients.add("b", numbers({4.5}), numbers({4}));
  EXPECT_DOUBLE_EQ(gradients.l2(), 0.1);
  of_zeros.add("a", numbers({3, 4}), numbers({0, 0}));
  EXPECT_DOUBLE_EQ(of_zeros.l2(), 5);
}

TEST(Comparison, L2AddsUpInDoublePrecision) {
  Comparison gradients("gradient of");
  const at::Tensor reference = at::ones({1000}, at::kFloat) * 1e-30;  // its square is no float32
  gradients.add("a", reference * 1.5, reference);
  EXPECT_NEAR(gradients.l2(), 0.5, 1e-6);
}

TEST(Deviation, PartsGiveWhatTheWholeGives) {
  const at::Tensor reference = at::arange(1, 25, at::kDouble).view({2, 3, 4});
  at::Tensor ours = reference.clone();
  ours[1][2][3] += 0.5;
  ours[0][1][0] -= 0.25;
  Deviation whole, parts;
  whole.add(ours, reference);
  for (const auto& [begin, columns] : {std::pair<int64_t, int64_t>{0, 1}, {1, 0}, {1, 3}})
    parts.add(ours.narrow(2, begin, columns), reference.narrow(2, begin, columns));
  EXPECT_EQ(whole.difference(), 0.5);
  EXPECT_EQ(whole.scale(), 24);
  EXPECT_DOUBLE_EQ(whole.squared_difference(), 0.3125);
  EXPECT_EQ(parts.difference(), whole.difference());
  EXPECT_EQ(parts.scale(), whole.scale());
}

/// Large tensors are taken apart, also where their memory is not in one piece.
TEST(Deviation, FindsTheOneElementOfALargeTensor) {
  const at::Tensor reference = at::ones({5, 3, 701, 403}, at::kDouble).narrow(3, 1, 401);
  for (const double wrong : {1.25, static_cast<double>(NAN)}) {
    at::Tensor ours = reference.clone();
    ours[4][2][700][400] = wrong;
    Deviation deviation;
    deviation.add(ours, reference);
    EXPECT_EQ(deviation.difference(), std::isnan(wrong) ? kInfinity : 0.25);
    EXPECT_EQ(deviation.squared_reference(), static_cast<double>(reference.numel()));
    deviation.add(reference, reference);
    EXPECT_EQ(deviation.difference(), std::isnan(wrong) ? kInfinity : 0.25) << "it stays";
  }
}

}  // namespace
}  // namespace tessera::comparison_test
