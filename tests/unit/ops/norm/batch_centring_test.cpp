// Batch centring and rows of length 1, on images and on features, against autograd.

#include "tessera/ops/norm/batch_centring.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tessera/ops/norm/norm.h"
#include "tessera/ops/norm/row_norm.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::batch_centring_test {
namespace {

ValueType value_type(const Shape& shape) {
  if (shape.size() > 2) return ValueType::image(shape);
  ValueType type;
  type.axes = {{AxisKind::kBatch, shape[0], -1, {}}, {AxisKind::kChannel, shape[1], -1, {}}};
  return type;
}

Shape random_shape(uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Shape shape{between(2, 5), between(1, 4)};
  for (int64_t axes = between(0, 3); axes > 0; --axes) shape.push_back(between(1, 9));
  return shape;
}

Graph centred(const Shape& shape) {
  Graph graph;
  batch_centring(graph, graph.add_input("x", value_type(shape)), "centred");
  return graph;
}

TEST(BatchCentring, MatchesAutograd) {
  for (uint64_t seed = 0; seed < 40; ++seed) check_graph_node(centred(random_shape(seed)), seed);
}

TEST(BatchCentring, TakesEachMicroBatchByItself) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Graph whole = centred(random_shape(seed));
    Graph parts;
    const ValueId x = parts.add_input("x", whole.node(0).types.inputs[0]);
    parts.add_node("centred", with_batch_parts(*whole.node(0).op, 2), {x});
    check_graph_node(parts, seed, {.micro_batches = 2});
  }
}

/// A mean of 10^6 beside differences of 1: the mean of a piece is never taken from a sum of
/// squares.
TEST(BatchCentring, OfLargeNumbers) {
  const Graph graph = centred({3, 2, 8, 9});
  const at::Tensor x = at::randn({3, 2, 8, 9}, at::kDouble) + 1e6;
  check_op(*graph.node(0).op, graph.node(0).types.inputs, {x}, {}, {}, 1,
           {.tolerance = 1e-9, .float32_tolerance = 1});
}

TEST(RowNorm, MatchesAutograd) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Graph graph;
    const ValueId x = graph.add_input("x", value_type(random_shape(seed)));
    row_norm(graph, x, "rows", {.epsilon = seed % 2 == 0 ? 1e-6 : 0.5});  // 0.5: some are short
    // A row of one number has no gradient, but the rounding of two terms that cancel.
    check_graph_node(graph, seed, {.float32_tolerance = 1e-3});
  }
}

TEST(RowNorm, OfZerosIsZero) {
  Graph graph;
  row_norm(graph, graph.add_input("x", value_type({2, 3, 4})), "rows");
  check_op(*graph.node(0).op, graph.node(0).types.inputs, {at::zeros({2, 3, 4}, at::kDouble)}, {},
           {}, 1);
}

TEST(RowNorm, RefusesAnEpsilonOfZero) {
  Graph graph;
  const ValueId x = graph.add_input("x", value_type({2, 3, 4}));
  EXPECT_THROW(row_norm(graph, x, "rows", {.epsilon = 0}), InvalidInput);
}

}  // namespace
}  // namespace tessera::batch_centring_test
