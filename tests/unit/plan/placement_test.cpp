#include "tessera/plan/placement.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tessera/zoo/zoo.h"

namespace tessera {
namespace {

TEST(Placement, CutsTheLevelsOfAUnetAtTheSamePlaces) {
  const Graph graph = build_model("unet2d:base=2,depth=4", {1, 3, 96, 80});
  const Placement placement(graph, {1, {3, 2}, {}});
  const Layout image = placement.layout_of(graph.type(graph.inputs()[0]));
  for (const Value& value : graph.values()) {
    if (value.type.num_spatial() != 2 || value.type.first_spatial() != 2) continue;
    const Layout layout = placement.layout_of(value.type);
    for (int p = 0; p < layout.num_pieces(); ++p)
      for (int axis : {2, 3}) {
        const int64_t stride = value.type.axes[axis].stride.num;
        EXPECT_EQ(layout.piece(p).box[axis].begin * stride, image.piece(p).box[axis].begin)
            << value.name;
      }
  }
}

TEST(Placement, CutsValuesOfOneSizeAndStrideAlike) {
  const Graph graph = build_model("unet2d:base=2,depth=4", {1, 3, 43, 38});
  const Placement placement(graph, {1, {3, 2}, {2, 1}});
  std::map<std::string, Layout> seen;
  for (const Value& value : graph.values()) {
    if (value.type.num_axes() != 4) continue;
    ValueType type = value.type;
    type.axes[1].size = 1;
    const Layout layout = placement.layout_of(type);
    std::string key = to_string(type);
    for (const Axis& axis : type.axes)
      key += fmt::format(" {}/{}", axis.stride.num, axis.stride.den);
    const auto [first, added] = seen.emplace(key, layout);
    EXPECT_TRUE(added || first->second == layout) << value.name;
  }
}

TEST(Placement, PutsReplicasFirstAndPiecesInsideRanks) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({4, 1, 8, 8}));
  const Layout layout = Placement(graph, {2, {2, 1}, {1, 2}}).layout_of(graph.type(x));
  ASSERT_EQ(layout.num_pieces(), 8);
  EXPECT_EQ(layout.piece(5), (Piece{Box{{2, 4}, {0, 1}, {0, 4}, {4, 8}}, 2}));
  EXPECT_EQ(layout.piece(6), (Piece{Box{{2, 4}, {0, 1}, {4, 8}, {0, 4}}, 3}));
}

TEST(Placement, SpreadsTheBatchOfFeaturesOverAllRanks) {
  Graph graph;
  graph.add_input("image", ValueType::image({6, 1, 8, 8}));
  ValueType features;
  features.axes = {{AxisKind::kBatch, 6, -1, {}}, {AxisKind::kChannel, 5, -1, {}}};
  const Layout layout = Placement(graph, {2, {3, 1}, {}}).layout_of(features);
  for (int rank = 0; rank < 6; ++rank)
    EXPECT_EQ(layout.piece(rank).box, (Box{{rank, rank + 1}, {0, 5}}));
}

}  // namespace
}  // namespace tessera
