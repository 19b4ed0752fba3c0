#include "tessera/graph/op.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tessera::op_test {
namespace {

at::Tensor row(std::initializer_list<double> numbers) { return at::tensor(numbers, at::kDouble); }

/// 1e16 swallows a 1 that comes after it, and not two that come before.
TEST(SumStatistics, AddsInOrder) {
  const at::Tensor sum = row({7, 7});
  sum_statistics({row({1, 1e16}), row({1, 1}), row({1e16, 1})}, sum);
  EXPECT_EQ(sum[0].item<double>(), 1e16 + 2);
  EXPECT_EQ(sum[1].item<double>(), 1e16);
}

TEST(SumStatistics, ZerosChangeNoBit) {
  const at::Tensor some = row({-0.0, 0.1, -1e-320}), zeros = row({0, 0, 0});
  const at::Tensor alone = row({7, 7, 7}), among_zeros = row({7, 7, 7});
  sum_statistics({some}, alone);
  sum_statistics({zeros, some, zeros}, among_zeros);
  EXPECT_TRUE(at::equal(alone.view(at::kLong), among_zeros.view(at::kLong)));
}

TEST(Phase, HasAWordOfItsOwn) {
  std::set<std::string> words;
  for (int phase = 0; phase <= static_cast<int>(Phase::kWeightGradient); ++phase)
    words.insert(to_string(static_cast<Phase>(phase)));
  EXPECT_EQ(words.size(), 10U);
  EXPECT_FALSE(words.contains("?"));
}

}  // namespace
}  // namespace tessera::op_test
