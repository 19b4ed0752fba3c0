// Adaptive average and max pooling on random shapes and sizes.

#include <gtest/gtest.h>

#include <limits>

#include "tessera/base/error.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::adaptive_pool_test {
namespace {

class AdaptivePools : public testing::TestWithParam<uint64_t> {
 protected:
  Shape draw_shape() {
    Shape shape{draw.between(1, 3), draw.between(1, 3)};
    for (int64_t axis = draw.between(1, 3); axis > 0; --axis) shape.push_back(draw.between(1, 11));
    return shape;
  }

  /// Larger than the input at times, and at times that of the input.
  AdaptivePoolOptions draw_options(const Shape& shape) {
    AdaptivePoolOptions options;
    const size_t entries = draw.between(0, 3) == 0 ? 1 : shape.size() - 2;
    for (size_t i = 0; i < entries; ++i)
      options.size.push_back(draw.between(0, 5) == 0 ? 0 : draw.between(1, 14));
    return options;
  }

  testing::ScopedTrace trace{__FILE__, __LINE__, testing::Message() << "seed " << GetParam()};
  Draw draw{GetParam()};
  Graph graph;
};
INSTANTIATE_TEST_SUITE_P(Seeds, AdaptivePools, testing::Range<uint64_t>(1, 31));

TEST_P(AdaptivePools, Average) {
  const Shape shape = draw_shape();
  AdaptivePoolOptions options = draw_options(shape);
  options.size.back() = std::max<int64_t>(options.size.back(), 2);  // 1 is a spatial reduction
  adaptive_average_pool(graph, graph.add_input("x", ValueType::image(shape)), "pool", options);
  check_graph_node(graph, GetParam());
}

TEST_P(AdaptivePools, Max) {
  const Shape shape = draw_shape();
  adaptive_max_pool(graph, graph.add_input("x", ValueType::image(shape)), "pool",
                    draw_options(shape));
  check_graph_node(graph, GetParam());
}

// Equal values, NaN and -inf: which of them gets the gradient is PyTorch's choice.
TEST_P(AdaptivePools, MaxOfTiesAndOddValues) {
  const Shape shape = draw_shape();
  const ValueId input = graph.add_input("x", ValueType::image(shape));
  adaptive_max_pool(graph, input, "pool", draw_options(shape));
  const at::Tensor x = draw.uniform(shape, -1.5, 1.5).round();
  const at::Tensor kind = draw.uniform(shape, 0, 1);
  x.masked_fill_(kind < 0.1, std::numeric_limits<double>::quiet_NaN());
  x.masked_fill_(kind > 0.6, -std::numeric_limits<double>::infinity());
  check_op(*graph.node(0).op, {graph.type(input)}, {x}, {}, {}, GetParam());
}

// Windows of more than 256 elements need wider codes.
TEST(AdaptivePool, MaxOfLargeWindows) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 39, 45}));
  adaptive_max_pool(graph, x, "pool", {.size = {2}});
  const Node& node = graph.node(0);
  EXPECT_EQ(node.op->saved(Box::whole(node.types.output.shape()), node.types).type, at::kInt);
  check_graph_node(graph, 1);
}

TEST(AdaptivePool, MaxOfWindowsOf256) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 32, 48}));
  adaptive_max_pool(graph, x, "pool", {.size = {2, 3}});
  const Node& node = graph.node(0);
  EXPECT_EQ(node.op->saved(Box::whole(node.types.output.shape()), node.types).type, at::kByte);
  check_graph_node(graph, 1);
}

TEST(AdaptivePool, Types) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 3, 9, 8}));
  const ValueType type = graph.type(adaptive_max_pool(graph, x, "pool", {.size = {6, 0}}));
  EXPECT_EQ(type.shape(), (Shape{2, 3, 6, 8}));
  EXPECT_EQ(type.axes[2].stride, Ratio::of(3, 2));
  EXPECT_EQ(type.axes[3].stride, Ratio::of(1, 1));
  const Node& node = graph.node(0);
  EXPECT_EQ(node.op->needed(0, {{0, 1}, {0, 3}, {1, 3}, {4, 8}}, node.types),
            (Box{{0, 1}, {0, 3}, {1, 5}, {4, 8}}));
  EXPECT_EQ(node.op->settings(), "size 6x0");
}

TEST(AdaptivePool, AverageToSizeOneIsASpatialMean) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 3, 9, 8}));
  for (const std::vector<int64_t>& size : {std::vector<int64_t>{1}, std::vector<int64_t>{1, 1}}) {
    const ValueId y = adaptive_average_pool(graph, x, "pool", {.size = size});
    EXPECT_EQ(graph.nodes().back().op->kind(), "spatial_mean");
    EXPECT_EQ(graph.type(y).shape(), (Shape{2, 3, 1, 1}));
  }
}

TEST(AdaptivePool, Refusals) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 3, 9, 8}));
  using Sizes = std::vector<int64_t>;
  for (const Sizes& size : {Sizes{}, Sizes{2, 2, 2}, Sizes{1, 1, 1}, Sizes{3, -1}}) {
    EXPECT_THROW(adaptive_average_pool(graph, x, "pool", {.size = size}), InvalidInput);
    EXPECT_THROW(adaptive_max_pool(graph, x, "pool", {.size = size}), InvalidInput);
  }
}

}  // namespace
}  // namespace tessera::adaptive_pool_test
