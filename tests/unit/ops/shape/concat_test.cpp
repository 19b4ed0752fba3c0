// Concatenation along the channels and along spatial axes.

#include "tessera/ops/shape/concat.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::concat_test {
namespace {

class RandomConcat : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomConcat, testing::Range<uint64_t>(0, 40));

TEST_P(RandomConcat, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Shape shape{between(1, 3), between(1, 4)};
  for (int64_t axis = between(1, 3); axis > 0; --axis) shape.push_back(between(1, 7));
  const int64_t axis = between(1, static_cast<int64_t>(shape.size()) - 1);
  Graph graph;
  std::vector<ValueId> values;
  for (int64_t i = between(1, 4); i > 0; --i) {
    shape[axis] = between(1, 6);
    values.push_back(graph.add_input("x", ValueType::image(shape)));
  }
  const ValueId y = concat(graph, values, "concat", static_cast<int>(axis));
  SCOPED_TRACE(
      fmt::format("seed {}, to {} along axis {}", GetParam(), to_string(graph.type(y)), axis));
  check_graph_node(graph, GetParam());
}

TEST(Concat, TakesTheStrideOfTheFirst) {
  Graph graph;
  ValueType coarse = ValueType::image({1, 2, 4, 5}), fine = ValueType::image({1, 2, 3, 5});
  coarse.axes[2].stride = Ratio::of(2, 1);
  const ValueId a = graph.add_input("a", coarse), b = graph.add_input("b", fine);
  const ValueType type = graph.type(concat(graph, {a, b}, "rows", 2));
  EXPECT_EQ(type.shape(), (Shape{1, 2, 7, 5}));
  EXPECT_EQ(type.axes[2].stride, Ratio::of(2, 1));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 4, 5}));
  const ValueId y = graph.add_input("y", ValueType::image({1, 2, 4, 6}));
  const ValueId z = graph.add_input("z", ValueType::image({1, 2, 4, 5, 1}));
  EXPECT_THROW(concat(graph, {x, y}, "channels"), InvalidInput);
  EXPECT_THROW(concat(graph, {x, y}, "rows", 2), InvalidInput);
  EXPECT_NO_THROW(concat(graph, {x, y}, "columns", 3));
  EXPECT_THROW(concat(graph, {x, z}, "channels"), InvalidInput);
  EXPECT_THROW(concat(graph, {x, x}, "batch", 0), InvalidInput);
  EXPECT_THROW(concat(graph, {x, x}, "beyond", 4), InvalidInput);
}

}  // namespace
}  // namespace tessera::concat_test
