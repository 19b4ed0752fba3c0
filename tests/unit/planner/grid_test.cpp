#include "tessera/planner/grid.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/lower/lower.h"
#include "tessera/zoo/zoo.h"

namespace tessera::grid_test {
namespace {

TEST(Grid, ListsAllFactorisations) {
  EXPECT_EQ(factorisations(6, 2),
            (std::vector<std::vector<int64_t>>{{1, 6}, {2, 3}, {3, 2}, {6, 1}}));
  EXPECT_EQ(factorisations(8, 3).size(), 10u);
}

TEST(Grid, TakesTheOneWithTheLeastTraffic) {
  for (const Shape& input : {Shape{1, 3, 64, 64}, Shape{1, 3, 256, 32}, Shape{1, 3, 24, 200}}) {
    const Graph graph = build_model("unet2d:base=2,depth=3", input);
    const std::vector<int64_t> best = best_space(graph, {}, 4);
    for (const std::vector<int64_t>& grid : factorisations(4, 2))
      EXPECT_LE(exchanged_elements(graph, {1, best, {}}), exchanged_elements(graph, {1, grid, {}}));
  }
}

TEST(Grid, CutsALongImageAlongItsLength) {
  const Graph graph = build_model("unet2d:base=2,depth=3", {1, 3, 1024, 32});
  EXPECT_EQ(best_space(graph, {}, 4), (std::vector<int64_t>{4, 1}));
}

TEST(Grid, RefusesMoreWorkersThanPixels) {
  const Graph graph = build_model("cnn1d:base=2,depth=2", {1, 1, 10});
  EXPECT_THROW(best_space(graph, {}, 11), InvalidInput);
  EXPECT_THROW(best_space(graph, {}, 0), InvalidInput);
}

TEST(Grid, SpreadsPiecesOverTheLongAxis) {
  const Graph graph = build_model("cnn2d:base=2,depth=2", {1, 1, 100, 10});
  EXPECT_EQ(best_pieces(graph, {}, 4), (std::vector<int64_t>{4, 1}));
}

}  // namespace
}  // namespace tessera::grid_test
