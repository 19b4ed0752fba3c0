// Layouts: any disjoint cover is accepted, anything else is refused, and look-ups equal a scan.

#include "tessera/geometry/layout.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::layout_test {
namespace {

std::vector<int> scan(const Layout& layout, const Box& box) {
  std::vector<int> indices;
  for (int index = 0; index < layout.num_pieces(); ++index)
    if (!intersect(layout.piece(index).box, box).empty()) indices.push_back(index);
  return indices;
}

/// On [0, 4n) x [0, n): n strips along one axis beside 3n strips along the other. These 4n pieces
/// have 3n * n cells between their boundaries.
std::vector<Piece> irregular_pieces(int64_t n) {
  std::vector<Piece> pieces;
  for (int64_t row = 0; row < n; ++row) pieces.push_back({Box{{0, n}, {row, row + 1}}, 0});
  for (int64_t column = n; column < 4 * n; ++column)
    pieces.push_back({Box{{column, column + 1}, {0, n}}, 1});
  return pieces;
}

TEST(Layout, LookUpEqualsAScan) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const Shape shape = random_shape(random, static_cast<int>(random.between(1, 6)), 400);
    const Layout layout = random_layout(random, shape, 5);
    for (int trial = 0; trial < 4; ++trial) {
      const Box box = random_box(random, shape, 3);
      SCOPED_TRACE(fmt::format("seed {}: {} in {}", seed, to_string(box), to_string(layout)));
      EXPECT_EQ(layout.pieces_meeting(box), scan(layout, box));
    }
  }
}

TEST(Layout, EveryElementHasOneOwner) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const Shape shape = random_shape(random, static_cast<int>(random.between(1, 5)), 100);
    const Layout layout = random_layout(random, shape, 3);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(layout)));
    for_each_position(Box::whole(shape), [&](const Shape& position) {
      EXPECT_EQ(
          std::ranges::count_if(layout.pieces(),
                                [&](const Piece& piece) { return holds(piece.box, position); }),
          1);
    });
  }
}

TEST(Layout, PiecesOfListsTheNonEmptyOnesInOrder) {
  const Layout layout({6},
                      {{Box{{4, 6}}, 1}, {Box{{2, 2}}, 1}, {Box{{0, 3}}, 0}, {Box{{3, 4}}, 1}});
  EXPECT_EQ(layout.pieces_of(0), std::vector<int>({2}));
  EXPECT_EQ(layout.pieces_of(1), std::vector<int>({0, 3}));
  EXPECT_TRUE(layout.pieces_of(7).empty());
  EXPECT_EQ(layout.num_pieces(), 4);
  EXPECT_EQ(to_string(layout), "6 {[4:6] on 1, [2:2] on 1, [0:3] on 0, [3:4] on 1}");
}

// Shrinking any piece by one leaves a gap, growing it makes an overlap or leaves the image.
TEST(Layout, RefusesGapsAndOverlaps) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const Shape shape = random_shape(random, static_cast<int>(random.between(1, 5)), 400);
    std::vector<Piece> pieces = random_layout(random, shape, 4).pieces();
    std::erase_if(pieces, [](const Piece& piece) { return piece.box.empty(); });
    Piece& piece = pieces[random.between(0, static_cast<int64_t>(pieces.size()) - 1)];
    Range& range = piece.box[static_cast<int>(random.between(0, piece.box.num_axes() - 1))];
    switch (random.between(0, 3)) {
      case 0:
        --range.end;
        break;
      case 1:
        ++range.begin;
        break;
      case 2:
        ++range.end;
        break;
      case 3:
        --range.begin;
        break;
    }
    SCOPED_TRACE(fmt::format("seed {}: {} changed", seed, to_string(piece.box)));
    EXPECT_THROW(Layout(shape, pieces), InvalidInput);
  }
}

TEST(Layout, RefusesWithTheBoxesInTheMessage) {
  try {
    Layout({4, 4}, {{Box{{0, 4}, {0, 3}}, 0}});
    FAIL() << "a gap was accepted";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "[layout] [0:4, 3:4] of [0:4, 0:4] has no owner");
  }
  try {
    Layout({4}, {{Box{{0, 3}}, 0}, {Box{{2, 4}}, 1}});
    FAIL() << "an overlap was accepted";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(),
                 "[layout] pieces 0 [0:3] and 1 [2:4] overlap; every element needs "
                 "exactly one owner");
  }
}

TEST(Layout, RefusesMalformedShapesAndPieces) {
  EXPECT_THROW(Layout({-1}, {}), InvalidInput);
  EXPECT_THROW(Layout(Shape(7, 1), {}), InvalidInput);
  EXPECT_THROW(Layout({int64_t{1} << 40, int64_t{1} << 40}, {}), InvalidInput);
  EXPECT_THROW(Layout({4}, {{Box{{0, 4}, {0, 1}}, 0}}), InvalidInput) << "axes";
  EXPECT_THROW(Layout({4}, {{Box{{0, 5}}, 0}}), InvalidInput) << "outside";
  EXPECT_THROW(Layout({4}, {{Box{{0, 4}}, -1}}), InvalidInput) << "rank";
  EXPECT_THROW(Layout({4}, {}), InvalidInput) << "no pieces";
}

TEST(Layout, ShapesWithoutElementsNeedNoPieces) {
  const Layout none({3, 0, 5}, {});
  EXPECT_TRUE(none.pieces_meeting(Box::whole({3, 1, 5})).empty());
  const Layout empties({3, 0}, {{Box{{0, 2}, {0, 0}}, 0}, {Box{{2, 3}, {0, 0}}, 1}});
  EXPECT_EQ(empties.num_pieces(), 2);
  EXPECT_TRUE(empties.pieces_of(1).empty());
  EXPECT_THROW(Layout({0}, {{Box{{0, 1}}, 0}}), InvalidInput);
}

TEST(Layout, ScalarsHaveOneElement) {
  const Layout scalar({}, {{Box{}, 2}});
  EXPECT_EQ(scalar.pieces_meeting(Box{}), std::vector<int>({0}));
  EXPECT_THROW(Layout({}, {}), InvalidInput);
  EXPECT_THROW(Layout({}, {{Box{}, 0}, {Box{}, 1}}), InvalidInput);
}

TEST(Layout, ListsTooIrregularForATableWorkAlike) {
  const int64_t n = 1000;
  std::vector<Piece> pieces = irregular_pieces(n);
  const Layout layout({4 * n, n}, pieces);
  Random random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const Box box = random_box(random, {4 * n, n}, 3);
    SCOPED_TRACE(to_string(box));
    EXPECT_EQ(layout.pieces_meeting(box), scan(layout, box));
  }
  std::vector<Piece> gap = pieces;
  gap.pop_back();
  EXPECT_THROW(Layout({4 * n, n}, gap), InvalidInput);
  std::vector<Piece> overlap = pieces;
  overlap[5].box = overlap[6].box;  // the right number of elements, twice the same
  EXPECT_THROW(Layout({4 * n, n}, overlap), InvalidInput);
}

TEST(Layout, EqualsByShapeAndPieces) {
  const Layout a({4}, {{Box{{0, 4}}, 0}});
  EXPECT_EQ(a, Layout({4}, {{Box{{0, 4}}, 0}}));
  EXPECT_FALSE(a == Layout({4}, {{Box{{0, 4}}, 1}}));
  EXPECT_FALSE(a == Layout({5}, {{Box{{0, 5}}, 0}}));
}

}  // namespace
}  // namespace tessera::layout_test
