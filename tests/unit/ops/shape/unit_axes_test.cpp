// Axes of size 1 that come and go.

#include "tessera/ops/shape/unit_axes.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::unit_axes_test {
namespace {

class UnitAxes : public testing::TestWithParam<uint64_t> {
 protected:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
  Shape random_shape(int64_t most_spatial) {
    Shape shape{between(1, 3), between(1, 4)};
    for (int64_t axis = between(1, most_spatial); axis > 0; --axis) shape.push_back(between(1, 6));
    return shape;
  }
  void check() {
    SCOPED_TRACE("seed " + std::to_string(GetParam()));
    check_graph_node(graph, GetParam());
  }

  std::mt19937_64 engine{GetParam()};
  Graph graph;
};
INSTANTIATE_TEST_SUITE_P(Seeds, UnitAxes, testing::Range<uint64_t>(0, 20));

TEST_P(UnitAxes, DropAnyAndBringItBack) {
  Shape shape = random_shape(3);
  const int64_t axis = between(1, static_cast<int64_t>(shape.size()) - 1);
  shape[axis] = 1;
  const ValueId x = graph.add_input("x", ValueType::image(shape));
  const ValueId dropped = squeeze(graph, x, "squeeze", static_cast<int>(axis));
  EXPECT_EQ(graph.type(dropped).num_axes(), static_cast<int>(shape.size()) - 1);
  const ValueId back = unsqueeze(graph, dropped, "unsqueeze", static_cast<int>(axis));
  EXPECT_EQ(graph.type(back), graph.type(x));
  check();
}

TEST_P(UnitAxes, AddASpatialAxis) {
  const Shape shape = random_shape(2);
  const int64_t axis = between(2, static_cast<int64_t>(shape.size()));
  const ValueId x = graph.add_input("x", ValueType::image(shape));
  const ValueType type = graph.type(unsqueeze(graph, x, "unsqueeze", static_cast<int>(axis)));
  Shape longer = shape;
  longer.insert(longer.begin() + axis, 1);
  EXPECT_EQ(type, ValueType::image(longer));
  check();
}

TEST(UnitAxisRules, KindsAndNumbers) {
  Graph graph;
  ValueType type = ValueType::image({2, 1, 1, 6});
  type.axes[3].stride = Ratio::of(4, 1);
  const ValueId x = graph.add_input("x", type);
  const ValueId line = squeeze(graph, x, "line", 2);
  EXPECT_EQ(graph.type(line).axes[2].spatial_index, 1) << "cut as before";
  EXPECT_EQ(graph.type(line).axes[2].stride, Ratio::of(4, 1));
  const ValueId pixels = squeeze(graph, line, "pixels", 1);
  EXPECT_EQ(graph.type(pixels).first_spatial(), 1);
  const ValueType again = graph.type(unsqueeze(graph, pixels, "again", 1));
  EXPECT_EQ(again, graph.type(line));
  EXPECT_EQ(graph.type(unsqueeze(graph, line, "image", 2)), type);
}

TEST(UnitAxisRules, FeaturesToScalarsAndImages) {
  Graph graph;
  ValueType type;
  type.axes = {{AxisKind::kBatch, 5, -1, {}}, {AxisKind::kChannel, 1, -1, {}}};
  const ValueId x = graph.add_input("x", type);
  const ValueId scalars = squeeze(graph, x, "scalars", 1);
  EXPECT_EQ(graph.type(scalars).shape(), Shape{5});
  EXPECT_EQ(graph.type(unsqueeze(graph, scalars, "features", 1)), type);
  const ValueId line = unsqueeze(graph, x, "line", 2);
  EXPECT_EQ(graph.type(line), ValueType::image({5, 1, 1}));
  check_graph_node(graph, 1);
}

TEST(UnitAxisRules, RefusesWhatDoesNotFit) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 1, 6}));
  EXPECT_THROW(squeeze(graph, x, "batch", 0), InvalidInput);
  EXPECT_THROW(squeeze(graph, x, "channels", 1), InvalidInput);
  EXPECT_THROW(squeeze(graph, x, "beyond", 4), InvalidInput);
  EXPECT_THROW(unsqueeze(graph, x, "batch", 0), InvalidInput);
  EXPECT_THROW(unsqueeze(graph, x, "before the channels", 1), InvalidInput);
  EXPECT_THROW(unsqueeze(graph, x, "beyond", 5), InvalidInput);
  const ValueId volume = unsqueeze(graph, x, "volume", 2);
  EXPECT_THROW(unsqueeze(graph, volume, "four axes", 2), InvalidInput);
}

}  // namespace
}  // namespace tessera::unit_axes_test
