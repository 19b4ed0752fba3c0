// The one rule that cuts an axis: partition, balance, alignment, nesting, and no overflow.

#include "tessera/geometry/split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tessera/base/error.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::split_test {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

std::vector<Range> all_parts(int64_t size, int64_t parts, int64_t align) {
  std::vector<Range> ranges;
  for (int64_t index = 0; index < parts; ++index)
    ranges.push_back(split(size, parts, index, align));
  return ranges;
}

/// By trying every divisor: the largest with enough multiples inside the axis to cut it at.
int64_t brute_force_align(int64_t size, int64_t parts, int64_t align) {
  for (int64_t divisor = align; divisor > 1; --divisor) {
    if (align % divisor != 0) continue;
    int64_t non_empty = 0;
    for (int64_t at = 0; at < size; at += divisor) ++non_empty;
    if (non_empty >= parts) return divisor;
  }
  return 1;
}

struct Case {
  int64_t size, parts, align;
};

Case random_case(Random& random) {
  return {random.between(0, 200), random.between(1, 20), random.between(1, 40)};
}

std::string to_string(const Case& c) {
  return fmt::format("size {} parts {} align {}", c.size, c.parts, c.align);
}

TEST(Split, PartsFollowEachOtherAndCoverTheAxis) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Case c = random_case(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(c)));
    int64_t at = 0;
    for (const Range& part : all_parts(c.size, c.parts, c.align)) {
      EXPECT_EQ(part.begin, at);
      EXPECT_GE(part.end, part.begin);
      at = part.end;
    }
    EXPECT_EQ(at, c.size);
  }
}

TEST(Split, UsesTheLargestDivisorThatLeavesNoPartEmpty) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Case c = random_case(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(c)));
    const int64_t align = effective_align(c.size, c.parts, c.align);
    EXPECT_EQ(align, brute_force_align(c.size, c.parts, c.align));
    for (const Range& part : all_parts(c.size, c.parts, c.align)) {
      EXPECT_EQ(part.begin % align, 0);
      EXPECT_TRUE(!part.empty() || c.size < c.parts);
    }
  }
}

TEST(Split, PartsDifferByAtMostTheAlignment) {
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Case c = random_case(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(c)));
    int64_t smallest = c.size, largest = 0;
    for (const Range& part : all_parts(c.size, c.parts, c.align)) {
      smallest = std::min(smallest, part.size());
      largest = std::max(largest, part.size());
    }
    EXPECT_LE(largest - smallest, effective_align(c.size, c.parts, c.align));
  }
}

TEST(Split, Nests) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    Random random(seed);
    const Case c = random_case(random);
    const int64_t finer = random.between(1, 6);
    SCOPED_TRACE(fmt::format("seed {}: {} finer {}", seed, to_string(c), finer));
    if (effective_align(c.size, c.parts, c.align) !=
        effective_align(c.size, c.parts * finer, c.align))
      continue;
    ++compared;
    for (int64_t index = 0; index < c.parts; ++index) {
      const Range part = split(c.size, c.parts, index, c.align);
      EXPECT_EQ(part.begin, split(c.size, c.parts * finer, index * finer, c.align).begin);
      EXPECT_EQ(part.end, split(c.size, c.parts * finer, (index + 1) * finer - 1, c.align).end);
    }
  }
  EXPECT_GT(compared, 1000);
}

// 96 pixels, a network whose coarsest stride is 8: every level cuts at the same place of the image.
TEST(Split, LevelsOfANetworkAreCutAlike) {
  for (int64_t parts : {1, 2, 3, 5, 12})
    for (int64_t index = 0; index < parts; ++index)
      for (int64_t stride : {2, 4, 8}) {
        const Range fine = split(96, parts, index, 8);
        const Range coarse = split(96 / stride, parts, index, 8 / stride);
        EXPECT_EQ(fine, (Range{coarse.begin * stride, coarse.end * stride}));
      }
}

TEST(Split, FewerElementsThanPartsLeavesSomeEmpty) {
  int64_t owned = 0;
  for (const Range& part : all_parts(3, 8, 4)) {
    EXPECT_LE(part.size(), 1);
    owned += part.size();
  }
  EXPECT_EQ(owned, 3);
  EXPECT_TRUE(split(0, 1, 0).empty());
  EXPECT_EQ(effective_align(0, 1, 8), 1);
}

TEST(Split, HugeAxesDoNotOverflow) {
  EXPECT_EQ(split(kHuge, 1, 0), (Range{0, kHuge}));
  EXPECT_EQ(split(kHuge, kHuge, kHuge - 1), (Range{kHuge - 1, kHuge}));
  EXPECT_EQ(split(kHuge, 2, 1, int64_t{1} << 62), (Range{int64_t{1} << 62, kHuge}));
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int64_t size = kHuge - random.between(0, 1000);
    const int64_t parts = random.between(2, kHuge / 2);
    const int64_t index = random.between(0, parts - 2);
    const int64_t align = random.between(1, 1 << 20);
    const Range part = split(size, parts, index, align);
    const int64_t unit = effective_align(size, parts, align);
    EXPECT_EQ(part.begin % unit, 0);
    EXPECT_EQ(part.end, split(size, parts, index + 1, align).begin);
    EXPECT_EQ(split(size, parts, parts - 1, align).end, size);
    EXPECT_LE(std::abs(part.size() - size / parts), unit);
  }
}

TEST(Split, RefusesImpossibleArguments) {
  EXPECT_THROW(split(-1, 1, 0), InvalidInput);
  EXPECT_THROW(split(8, 0, 0), InvalidInput);
  EXPECT_THROW(split(8, 2, 2), InvalidInput);
  EXPECT_THROW(split(8, 2, -1), InvalidInput);
  EXPECT_THROW(split(8, 2, 0, 0), InvalidInput);
  EXPECT_THROW(effective_align(8, 2, 0), InvalidInput);
}

}  // namespace
}  // namespace tessera::split_test
