#include <gtest/gtest.h>

#include "tessera/kernels/cpu/window_product.h"

namespace tessera::row_panels_test {
namespace {

TEST(RowPanels, AllFitWhereTheirRowsDo) {
  constexpr int64_t kPerRow = 5;
  for (int64_t rows = 1; rows <= 600; ++rows) {
    const RowPanels panels(rows);
    EXPECT_EQ(panels.within(static_cast<size_t>(rows * kPerRow), kPerRow), panels.count()) << rows;
  }
}

TEST(RowPanels, FewerFitInLess) {
  for (int64_t rows : {1, 14, 15, 64, 128, 257, 512})
    for (int64_t room = 0; room < rows; ++room) {
      const RowPanels panels(rows);
      const int64_t fit = panels.within(static_cast<size_t>(room), 1);
      EXPECT_GE(fit, 1);
      EXPECT_LE((fit - 1) * panels.height(), room) << rows;  // one, whatever the room
    }
}

/// Each round's panels lie in the room, and all have their turn.
TEST(RowPanels, RoundsAreOfAboutTheSameSize) {
  const RowPanels panels(512);
  for (int64_t at_once = 1; at_once <= panels.count(); ++at_once) {
    int64_t next = 0;
    for_panels_that_fit(panels, at_once, [&](int64_t first, int64_t end) {
      EXPECT_EQ(first, next);
      EXPECT_LE(end - first, at_once);
      next = end;
    });
    EXPECT_EQ(next, panels.count());
  }
}

}  // namespace
}  // namespace tessera::row_panels_test
