// The most probable class of every pixel, against ATen's argmax.

#include "tessera/kernels/classes.h"

#include <gtest/gtest.h>

#include <limits>

namespace tessera::classes_test {
namespace {

void expect_as_argmax(const at::Tensor& scores) {
  EXPECT_TRUE(classes_with_largest_score(scores).equal(scores.argmax(1))) << scores.sizes();
}

TEST(ClassesTest, AreThoseOfArgmax) {
  at::manual_seed(3);
  for (const at::ScalarType real : {at::kFloat, at::kDouble})
    for (const int64_t classes : {1, 2, 7, 300}) {
      const auto options = at::TensorOptions(real);
      expect_as_argmax(at::randn({2, classes}, options));
      expect_as_argmax(at::randn({2, classes, 700}, options));
      expect_as_argmax(at::randn({1, classes, 9, 300}, options));
      expect_as_argmax(at::randn({2, classes, 3, 5, 4}, options));
      expect_as_argmax(at::randint(0, 3, {1, classes, 40, 30}, options));  // many are equal
      expect_as_argmax(at::randn({2, classes, 0, 4}, options));
    }
}

TEST(ClassesTest, OfViews) {
  const at::Tensor scores = at::randn({2, 3, 20, 30});
  expect_as_argmax(scores.narrow(2, 3, 9).narrow(3, 1, 7));
  expect_as_argmax(scores.transpose(2, 3));
  expect_as_argmax(at::randn({2, 20, 30, 3}).permute({0, 3, 1, 2}));
}

TEST(ClassesTest, NotANumberWins) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor scores =
      at::tensor({1.0, kNan, 2.0, kNan, 3.0, 1.0, kNan, kNan, 9.0, 9.0, 9.0, 9.0}).view({1, 3, 4});
  EXPECT_TRUE(classes_with_largest_score(scores).equal(at::tensor({2, 0, 1, 0}).view({1, 4})));
}

}  // namespace
}  // namespace tessera::classes_test
