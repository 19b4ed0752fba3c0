// Max unpooling after random poolings on one to three spatial axes, overlapping windows included.

#include "tessera/ops/pool/max_unpool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/ops/op_harness.h"
#include "tests/unit/refusal.h"

namespace tessera::max_unpool_test {
namespace {

ValueId unpool(Graph& graph, const Shape& shape, const PoolOptions& options) {
  const ValueId x = graph.add_input("x", ValueType::image(shape));
  Graph pooling = graph;
  const ValueType pooled = pooling.type(max_pool(pooling, x, "pool", options));
  return max_unpool(graph, graph.add_input("y", pooled), x, "unpool", options);
}

class RandomUnpooling : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomUnpooling, testing::Range<uint64_t>(0, 30));

TEST_P(RandomUnpooling, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Shape shape{between(1, 2), between(1, 3)};
  PoolOptions options;
  options.padding.clear();
  for (int64_t axis = between(1, 3); axis > 0; --axis) {
    options.kernel.push_back(between(1, 4));
    options.padding.push_back(between(0, options.kernel.back() / 2));
    options.stride.push_back(between(1, 5));  // beyond the kernel: pixels that no window reads
    shape.push_back(between(4, 13));
  }
  options.ceil_mode = between(0, 1);
  // So that four taps fit the smallest axis.
  const int64_t smallest = *std::min_element(shape.begin() + 2, shape.end());
  options.dilation = {std::min(between(1, 3), (smallest - 1) / 3)};
  SCOPED_TRACE(fmt::format("{} by kernel {}, stride {}, padding {}, dilation {}", to_string(shape),
                           to_string(options.kernel), to_string(options.stride),
                           to_string(options.padding), to_string(options.dilation)));
  Graph graph;
  unpool(graph, shape, options);
  check_graph_node(graph, GetParam(), {.max_parts_per_axis = 4});
}

/// Equal values: the first of a window is its maximum.
TEST(MaxUnpool, FindsThePlacesByThePoolingsRule) {
  Graph graph;
  unpool(graph, {2, 2, 9, 8}, {.kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
  const Node& node = graph.node(0);
  at::manual_seed(4);
  const at::Tensor x = at::randint(0, 3, node.types.inputs[1].shape(), at::kDouble);
  const at::Tensor y = at::randn(node.types.inputs[0].shape(), at::kDouble);
  for (uint64_t seed = 0; seed < 4; ++seed)
    check_op(*node.op, node.types.inputs, {y, x}, {}, {}, seed);
}

TEST(MaxUnpool, GivesTheValuesBack) {
  Graph graph;
  unpool(graph, {1, 1, 2, 4}, {.kernel = {2, 2}});
  const at::Tensor x = at::tensor({1., 2., 8., 7., 4., 3., 6., 5.}).view({1, 1, 2, 4});
  const at::Tensor y = at::tensor({10., 20.}).view({1, 1, 1, 2});
  const at::Tensor back =
      graph.node(0).op->reference({.inputs = {y, x}, .parameters = {}, .buffers = {}});
  EXPECT_TRUE(at::equal(back.flatten(), at::tensor({0., 0., 20., 0., 10., 0., 0., 0.})));
}

TEST(MaxUnpool, RefusesValuesOfAnotherShape) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 8, 8}));
  const ValueId y = graph.add_input("y", ValueType::image({1, 2, 4, 3}));
  expect_refusal(
      [&] {
        max_unpool(graph, y, x, "unpool", {.kernel = {2, 2}});
      },
      "the pooling of 1x2x8x8 has the shape 1x2x4x4");
}

}  // namespace
}  // namespace tessera::max_unpool_test
