// The largest value along channels and space; equal maxima share the gradient.

#include "tessera/ops/pool/amax.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::amax_test {
namespace {

TEST(Amax, RandomShapesAndAxes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto integer = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    Shape shape{integer(1, 3), integer(1, 5)};
    for (int64_t i = integer(1, 3); i > 0; --i) shape.push_back(integer(1, 7));
    AmaxOptions options;
    for (int axis = 1; axis < static_cast<int>(shape.size()); ++axis)
      if (integer(0, 1)) options.axes.push_back(axis);
    if (options.axes.empty()) options.axes.push_back(1);
    Graph graph;
    amax(graph, graph.add_input("x", ValueType::image(shape)), "amax", options);
    check_graph_node(graph, seed);
  }
}

TEST(Amax, EqualMaximaShareTheGradient) {
  Graph graph;
  amax(graph, graph.add_input("x", ValueType::image({1, 2, 3, 2})), "amax", {{2, 3}});
  const at::Tensor x =
      at::tensor({1., 4., 4., 0., 4., 2., 0., 0., 0., 0., 0., 0.}, at::kDouble).view({1, 2, 3, 2});
  check_op(*graph.node(0).op, {graph.type(0)}, {x}, {}, {}, 1);
}

TEST(Amax, RefusesAxesThatAreNotThere) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 3}));
  EXPECT_THROW(amax(graph, x, "amax", {{}}), InvalidInput);
  EXPECT_THROW(amax(graph, x, "amax", {{0}}), InvalidInput);
  EXPECT_THROW(amax(graph, x, "amax", {{3}}), InvalidInput);
  EXPECT_THROW(amax(graph, x, "amax", {{1, 1}}), InvalidInput);
}

}  // namespace
}  // namespace tessera::amax_test
