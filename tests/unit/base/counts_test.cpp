#include "tessera/base/counts.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::counts_test {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Counts, AreMultiplied) {
  EXPECT_EQ(product_of({}), 1);
  EXPECT_EQ(product_of({2, 3, 7}), 42);
  EXPECT_EQ(product_of(std::vector<int64_t>{65536, 65536}), int64_t{1} << 32);
}

/// 2^32 * 2^32 is 0 in 64 bits, and would pass any limit.
TEST(Counts, ThatDoNotFitAreTheLargestNumber) {
  EXPECT_EQ(product_of({int64_t{1} << 32, int64_t{1} << 32}), kMost);
  EXPECT_EQ(product_of({int64_t{1} << 62, 4, 1}), kMost);
  EXPECT_EQ(product_of({kMost, 1}), kMost);
  EXPECT_EQ(product_of({kMost, 2, 0}), 0);
}

}  // namespace
}  // namespace tessera::counts_test
