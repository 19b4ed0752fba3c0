// Slices of channels and spatial axes with random begins, ends and steps.

#include "tessera/ops/shape/slice.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::slice_test {
namespace {

class RandomSlice : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSlice, testing::Range<uint64_t>(0, 40));

TEST_P(RandomSlice, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Shape shape{between(1, 2), between(1, 7)};
  for (int64_t axis = between(1, 3); axis > 0; --axis) shape.push_back(between(1, 12));
  SliceOptions options;
  options.axis = static_cast<int>(between(1, static_cast<int64_t>(shape.size()) - 1));
  options.begin = between(0, shape[options.axis] - 1);
  options.end = between(options.begin + 1, shape[options.axis]);
  options.step = between(1, 4);
  Graph graph;
  slice(graph, graph.add_input("x", ValueType::image(shape)), "slice", options);
  SCOPED_TRACE(
      fmt::format("seed {}, {}, {}", GetParam(), to_string(shape), graph.node(0).op->settings()));
  check_graph_node(graph, GetParam());
}

TEST(Slice, FeaturesWithoutSpace) {
  Graph graph;
  ValueType type;
  type.axes = {{AxisKind::kBatch, 5, -1, {}}, {AxisKind::kChannel, 7, -1, {}}};
  slice(graph, graph.add_input("x", type), "slice", {.axis = 1, .begin = 1, .end = 7, .step = 2});
  check_graph_node(graph, 1);
}

TEST(Slice, StepsMultiplyStrides) {
  Graph graph;
  ValueType type = ValueType::image({1, 6, 9, 8});
  type.axes[2].stride = Ratio::of(2, 1);
  const ValueId x = graph.add_input("x", type);
  const ValueType rows =
      graph.type(slice(graph, x, "rows", {.axis = 2, .begin = 1, .end = 9, .step = 3}));
  EXPECT_EQ(rows.shape(), (Shape{1, 6, 3, 8}));
  EXPECT_EQ(rows.axes[2].stride, Ratio::of(6, 1));
  EXPECT_EQ(rows.axes[2].spatial_index, 0);
  const ValueType channels = graph.type(slice(graph, x, "channels", {.end = 6, .step = 2}));
  EXPECT_EQ(channels.shape(), (Shape{1, 3, 9, 8}));
}

TEST(Slice, RefusesWhatDoesNotFit) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 3, 8}));
  const auto refuse = [&](const SliceOptions& options) {
    EXPECT_THROW(slice(graph, x, "slice", options), InvalidInput);
  };
  refuse({.axis = 0, .end = 1});
  refuse({.axis = 3, .end = 1});
  refuse({.axis = 2, .begin = -1, .end = 3});
  refuse({.axis = 2, .begin = 3, .end = 3});
  refuse({.axis = 2, .begin = 3, .end = 9});
  refuse({.axis = 2, .begin = 0, .end = 8, .step = 0});
}

}  // namespace
}  // namespace tessera::slice_test
