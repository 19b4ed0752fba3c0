// Ranges and boxes: emptiness, intersection and hull against membership of every position.

#include "tessera/geometry/box.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::box_test {
namespace {

TEST(Range, EmptyRangesAddNothingAndLieEverywhere) {
  const Range empty{7, 3};
  EXPECT_TRUE(empty.empty());
  EXPECT_EQ(empty.size(), 0);
  EXPECT_TRUE((Range{0, 1}).contains(empty));
  EXPECT_EQ(hull(empty, Range{2, 4}), (Range{2, 4}));
  EXPECT_EQ(hull(Range{2, 4}, empty), (Range{2, 4}));
  EXPECT_EQ(hull(Range{2, 4}, Range{8, 9}), (Range{2, 9}));
  EXPECT_EQ((Range{2, 4}).shifted(-3), (Range{-1, 1}));
}

TEST(Box, IntersectionHoldsThePositionsOfBoth) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Shape shape = random_shape(random, static_cast<int>(random.between(1, 5)), 100);
    const Box a = random_box(random, shape, 2), b = random_box(random, shape, 2);
    SCOPED_TRACE(to_string(a) + " and " + to_string(b));
    int64_t common = 0, of_a = 0;
    for_each_position(a, [&](const Shape& position) {
      ++of_a;
      common += holds(b, position);
    });
    EXPECT_EQ(a.volume(), of_a);
    EXPECT_EQ(a.empty(), of_a == 0);
    EXPECT_EQ(intersect(a, b).volume(), common);
    EXPECT_EQ(b.contains(a), common == of_a);
    EXPECT_TRUE(hull(a, b).contains(a) && hull(a, b).contains(b));
  }
}

TEST(Box, NamesItselfAndItsShape) {
  const Box box{{0, 1}, {-2, 5}};
  EXPECT_EQ(to_string(box), "[0:1, -2:5]");
  EXPECT_EQ(to_string(box.shape()), "1x7");
  EXPECT_EQ(box, Box(std::vector<Range>{{0, 1}, {-2, 5}}));
  EXPECT_NE(box, Box({{0, 1}}));
  EXPECT_EQ(Box::whole({3, 4}), Box({{0, 3}, {0, 4}}));
  EXPECT_EQ(Box{}.volume(), 1) << "a scalar has one element";
}

TEST(Box, RefusesMixedAndTooManyAxes) {
  EXPECT_THROW(intersect(Box{{0, 1}}, Box{{0, 1}, {0, 1}}), InternalError);
  EXPECT_THROW(Box::whole(Shape(Box::kMaxAxes + 1, 1)), InternalError);
}

}  // namespace
}  // namespace tessera::box_test
