// Transfers: every needed element inside the image arrives exactly once, from its owner.

#include "tessera/geometry/transfer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tessera/base/error.h"
#include "tessera/geometry/split.h"
#include "tests/unit/geometry/random_layout.h"

namespace tessera::transfer_test {
namespace {

/// A rows x columns grid over a 2-D shape, one rank per piece.
Layout grid(const Shape& shape, int64_t rows, int64_t columns) {
  std::vector<Piece> pieces;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      pieces.push_back({Box{split(shape[0], rows, row), split(shape[1], columns, column)},
                        static_cast<int>(row * columns + column)});
  return Layout(shape, pieces);
}

/// What each piece needs for a window that reaches `halo` elements beyond it.
std::vector<Need> halo_needs(const Layout& layout, int64_t halo) {
  std::vector<Need> needs;
  for (const Piece& piece : layout.pieces()) {
    Need need{piece.box, piece.rank};
    for (int axis = 0; axis < need.box.num_axes(); ++axis) {
      need.box[axis].begin -= halo;
      need.box[axis].end += halo;
    }
    needs.push_back(need);
  }
  return needs;
}

std::vector<Need> needs_of(const Layout& layout) {
  std::vector<Need> needs;
  for (const Piece& piece : layout.pieces()) needs.push_back({piece.box, piece.rank});
  return needs;
}

std::vector<Need> random_needs(Random& random, const Shape& shape) {
  std::vector<Need> needs;
  for (int64_t count = random.between(0, 6); count > 0; --count)
    needs.push_back({random_box(random, shape, 4), static_cast<int>(random.between(0, 4))});
  return needs;
}

/// Moves name existing pieces and needs, their ranks, and elements of both, in plan order.
void expect_moves_are_legal(const Transfer& transfer, const Layout& layout,
                            const std::vector<Need>& needs) {
  std::tuple<int, int> previous{-1, -1};
  for (const Move& move : transfer.moves()) {
    SCOPED_TRACE("move " + to_string(move.box));
    const Piece& piece = layout.piece(move.source_piece);
    EXPECT_EQ(move.from, piece.rank);
    EXPECT_EQ(move.to, needs[move.need].rank);
    EXPECT_FALSE(move.box.empty());
    EXPECT_TRUE(piece.box.contains(move.box));
    EXPECT_TRUE(needs[move.need].box.contains(move.box));
    EXPECT_LT(previous, std::tuple(move.need, move.source_piece));
    previous = {move.need, move.source_piece};
  }
}

/// Every element of every need arrives once if it lies in the image, never if it does not.
void expect_exactly_once(const Transfer& transfer, const Layout& layout,
                         const std::vector<Need>& needs) {
  std::map<std::tuple<int, Shape>, int> arrivals;
  for (const Move& move : transfer.moves())
    for_each_position(move.box, [&](const Shape& position) { ++arrivals[{move.need, position}]; });
  const Box whole = Box::whole(layout.global_shape());
  for (int index = 0; index < static_cast<int>(needs.size()); ++index)
    for_each_position(needs[index].box, [&](const Shape& position) {
      const auto found = arrivals.find({index, position});
      ASSERT_EQ(found == arrivals.end() ? 0 : found->second, holds(whole, position) ? 1 : 0);
    });
}

void expect_correct(const Layout& layout, const std::vector<Need>& needs) {
  const Transfer transfer(layout, needs);
  expect_moves_are_legal(transfer, layout, needs);
  expect_exactly_once(transfer, layout, needs);
  int64_t remote_volume = 0;
  for (const Need& need : needs)
    for (const Piece& piece : layout.pieces())
      if (piece.rank != need.rank) remote_volume += intersect(piece.box, need.box).volume();
  EXPECT_EQ(transfer.remote_volume(), remote_volume);
}

TEST(Transfer, RandomNeedsArriveExactlyOnce) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Random random(seed);
    const Shape shape = random_shape(random, static_cast<int>(random.between(1, 5)), 120);
    const Layout layout = random_layout(random, shape, 5);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(layout)));
    expect_correct(layout, random_needs(random, shape));
  }
}

TEST(Transfer, HalosOfAnyWidthArriveExactlyOnce) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const Shape shape = random_shape(random, static_cast<int>(random.between(1, 4)), 60);
    const Layout layout = random_layout(random, shape, 5);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, to_string(layout)));
    expect_correct(layout, halo_needs(layout, random.between(0, 3)));
  }
}

TEST(Transfer, GridsChangeIntoEachOther) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Random random(seed);
    const Shape shape = random_shape(random, static_cast<int>(random.between(1, 5)), 120);
    const Layout from = random_layout(random, shape, 5), to = random_layout(random, shape, 5);
    SCOPED_TRACE(fmt::format("seed {}: {} to {}", seed, to_string(from), to_string(to)));
    expect_correct(from, needs_of(to));
    const Transfer change(from, needs_of(to));
    int64_t moved = 0;
    for (const Move& move : change.moves()) moved += move.box.volume();
    EXPECT_EQ(moved, Box::whole(shape).volume());
  }
}

//   0 1 2
//   3 4 5     the centre of a 3 x 3 grid hears from all its neighbours, the corners included
//   6 7 8
TEST(Transfer, HalosIncludeCorners) {
  const Layout layout = grid({9, 9}, 3, 3);
  const Transfer halo(layout, {{Box{{2, 7}, {2, 7}}, 4}});
  ASSERT_EQ(halo.moves().size(), 9u);
  EXPECT_EQ(halo.moves()[0], (Move{0, 4, 0, 0, Box{{2, 3}, {2, 3}}}));
  EXPECT_EQ(halo.moves()[5], (Move{5, 4, 5, 0, Box{{3, 6}, {6, 7}}}));
  EXPECT_EQ(halo.remote_volume(), 25 - 9);
}

TEST(Transfer, HalosReachBeyondTheNeighbour) {
  const Layout layout = grid({1, 10}, 1, 5);
  const Transfer halo(layout, {{Box{{0, 1}, {-1, 7}}, 0}});
  ASSERT_EQ(halo.moves().size(), 4u) << "parts of two elements, a halo of five";
  EXPECT_EQ(halo.moves()[3], (Move{3, 0, 3, 0, Box{{0, 1}, {6, 7}}}));
}

/// Ranks with many pieces look them up; the moves and their order are those of the whole transfer.
TEST(Transfer, OfARankWithManyPiecesIsItsPartOfTheWhole) {
  constexpr int kRanks = 3;
  std::vector<Piece> pieces = grid({64, 60}, 16, 12).pieces();
  for (size_t i = 0; i < pieces.size(); ++i) pieces[i].rank = static_cast<int>(i % kRanks);
  const Layout layout({64, 60}, pieces);
  const std::vector<Need> needs = halo_needs(layout, 2);
  const Transfer whole(layout, needs);
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_GT(layout.pieces_of(rank).size(), 32u);
    std::vector<Move> part;
    for (const Move& move : whole.moves())
      if (move.from == rank || move.to == rank) part.push_back(move);
    EXPECT_EQ(Transfer(layout, needs, rank).moves(), part) << "rank " << rank;
  }
  EXPECT_EQ(remote_volume(layout, needs), whole.remote_volume());
}

TEST(Transfer, ScatterAndGatherAreNeedsOfOneOwner) {
  const Layout layout = grid({8, 6}, 2, 2);
  const Layout on_root({8, 6}, {{Box::whole({8, 6}), 0}});
  EXPECT_EQ(Transfer(on_root, needs_of(layout)).remote_volume(), 48 - 12);
  EXPECT_EQ(Transfer(layout, needs_of(on_root)).moves().size(), 4u);
}

TEST(Transfer, NeedsOutsideTheImageMoveNothing) {
  const Layout layout = grid({4, 4}, 2, 2);
  EXPECT_TRUE(Transfer(layout, {{Box{{-3, 0}, {0, 4}}, 0}}).moves().empty());
  EXPECT_TRUE(Transfer(layout, {{Box{{1, 1}, {0, 4}}, 0}}).moves().empty());
  EXPECT_TRUE(Transfer(layout, {}).moves().empty());
  EXPECT_TRUE(Transfer(Layout({0}, {}), {{Box{{0, 4}}, 0}}).moves().empty());
}

TEST(Transfer, RefusesNeedsWithOtherAxes) {
  EXPECT_THROW(Transfer(grid({4, 4}, 2, 2), {{Box{{0, 4}}, 0}}), InternalError);
}

}  // namespace
}  // namespace tessera::transfer_test
