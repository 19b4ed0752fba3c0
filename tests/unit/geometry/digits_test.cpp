#include "tessera/geometry/digits.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tessera::digits_test {
namespace {

using Parts = std::vector<std::vector<Range>>;

TEST(Digits, WeightsOfEachDigit) {
  EXPECT_EQ(digit_weights(std::vector<int64_t>{3, 4}), (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(digit_weights(std::vector<int64_t>{2, 3, 5}), (std::vector<int64_t>{15, 5, 1}));
  EXPECT_TRUE(digit_weights(std::vector<int64_t>{}).empty());
}

TEST(Digits, HeadMiddleAndTail) {
  const std::vector<int64_t> sizes{3, 4};
  EXPECT_EQ(digit_parts({3, 9}, sizes),
            (Parts{{{0, 1}, {3, 4}}, {{1, 2}, {0, 4}}, {{2, 3}, {0, 1}}}));
  EXPECT_EQ(digit_parts({0, 12}, sizes), (Parts{{{0, 3}, {0, 4}}}));
  EXPECT_EQ(digit_parts({5, 7}, sizes), (Parts{{{1, 2}, {1, 3}}}));
  EXPECT_TRUE(digit_parts({5, 5}, sizes).empty());
}

TEST(Digits, AnAxisWithoutDigitsHasOnePosition) {
  EXPECT_EQ(digit_parts({0, 1}, std::vector<int64_t>{}), Parts{{}});
}

/// All positions of the range, each in one part.
TEST(Digits, PartsCoverTheRangeOnce) {
  std::mt19937_64 engine(7);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(engine() % limit); };
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<int64_t> sizes;
    int64_t volume = 1;
    for (int64_t digits = 1 + below(4); digits > 0; --digits) {
      sizes.push_back(1 + below(4));
      volume *= sizes.back();
    }
    const int64_t begin = below(volume), end = begin + 1 + below(volume - begin);
    const Parts parts = digit_parts({begin, end}, sizes);
    EXPECT_LE(parts.size(), 2 * sizes.size() - 1);
    const std::vector<int64_t> weights = digit_weights(sizes);
    std::multiset<int64_t> found;
    for (const std::vector<Range>& part : parts) {
      ASSERT_EQ(part.size(), sizes.size());
      std::vector<int64_t> positions{0};
      for (size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_TRUE((Range{0, sizes[i]}.contains(part[i])));
        std::vector<int64_t> next;
        for (int64_t position : positions)
          for (int64_t digit = part[i].begin; digit < part[i].end; ++digit)
            next.push_back(position + digit * weights[i]);
        positions = next;
      }
      found.insert(positions.begin(), positions.end());
    }
    std::multiset<int64_t> wanted;
    for (int64_t position = begin; position < end; ++position) wanted.insert(position);
    EXPECT_EQ(found, wanted);
  }
}

}  // namespace
}  // namespace tessera::digits_test
