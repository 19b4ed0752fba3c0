// What forward reads and writes, for a few operators, counted by hand.

#include <gtest/gtest.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pool/partial.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/concat.h"

namespace tessera::elements_moved_test {
namespace {

ValueId image(Graph& graph, const Shape& shape) {
  return graph.add_input("x", ValueType::image(shape));
}

double moved(const Graph& graph, const Box& out) {
  const Node& node = graph.nodes().back();
  return node.op->elements_moved(out, node.types);
}

TEST(ElementsMoved, ConvolutionReadsNoZerosAroundTheImage) {
  Graph graph;
  convolution(graph, image(graph, {1, 4, 8, 8}), "conv",
              {.out_channels = 6, .kernel = {3}, .padding = {1}});
  const int weights = 6 * 4 * 3 * 3 + 6;
  EXPECT_EQ(moved(graph, {{0, 1}, {0, 6}, {2, 4}, {2, 4}}), 4 * 4 * 4 + 6 * 2 * 2 + weights);
  EXPECT_EQ(moved(graph, {{0, 1}, {0, 6}, {0, 2}, {6, 8}}), 4 * 3 * 3 + 6 * 2 * 2 + weights);
}

TEST(ElementsMoved, GroupsHaveFewerWeights) {
  Graph graph;
  convolution(graph, image(graph, {2, 4, 8}), "conv",
              {.out_channels = 4, .kernel = {3}, .groups = 4, .bias = false});
  EXPECT_EQ(moved(graph, {{0, 2}, {0, 4}, {0, 6}}), 2 * 4 * 8 + 2 * 4 * 6 + 4 * 3);
}

TEST(ElementsMoved, TransposedConvolution) {
  Graph graph;
  transposed_convolution(graph, image(graph, {1, 4, 8, 8}), "up",
                         {.out_channels = 3, .kernel = {2}, .stride = {2}});
  // Rows 1 to 4 of the output come from rows 0 to 2 of the input.
  EXPECT_EQ(moved(graph, {{0, 1}, {0, 3}, {1, 5}, {0, 16}}),
            4 * 3 * 8 + 3 * 4 * 16 + (4 * 3 * 2 * 2 + 3));
}

TEST(ElementsMoved, LinearOnPixels) {
  Graph graph;
  linear(graph, image(graph, {2, 5, 6}), "fc", {.out_features = 7});
  EXPECT_EQ(moved(graph, {{1, 2}, {0, 7}, {2, 5}}), 5 * 3 + 7 * 3 + (7 * 5 + 7));
}

/// Two cells of 2 and 3 pixels of a space of 10: their hull is read, their columns are used.
TEST(ElementsMoved, PartialLinear) {
  const PartialLinear op({{{0, 2}}, {{2, 5}}, {{5, 10}}}, {10}, 6);
  const ValueType type = ValueType::image({2, 4, 10});
  const std::vector<ValueType> inputs{type};
  EXPECT_EQ(op.elements_moved({{0, 2}, {0, 6}, {0, 2}}, {inputs, op.infer_type(inputs)}),
            2 * 4 * 5 + 2 * 6 * 2 + 6 * 4 * 5);
}

TEST(ElementsMoved, PoolingReadsItsWindows) {
  Graph graph;
  max_pool(graph, image(graph, {1, 2, 9}), "pool", {.kernel = {3}, .stride = {2}, .padding = {1}});
  EXPECT_EQ(moved(graph, {{0, 1}, {0, 2}, {0, 2}}), 2 * 4 + 2 * 2);  // inputs -1 to 3
}

TEST(ElementsMoved, NormReadsAndWritesOnce) {
  Graph graph;
  batch_norm(graph, image(graph, {2, 3, 4}), "bn");
  EXPECT_EQ(moved(graph, {{0, 1}, {0, 3}, {1, 3}}), 2 * 3 * 2);
}

TEST(ElementsMoved, EveryInputCounts) {
  Graph graph;
  const ValueId x = image(graph, {2, 3, 4});
  concat(graph, {x, x}, "cat");
  EXPECT_EQ(moved(graph, {{0, 1}, {0, 6}, {1, 3}}), 2 * 6 * 2);
  arithmetic(graph, x, image(graph, {2, 3, 1}), "mul", Arithmetic::kMultiply);
  EXPECT_EQ(moved(graph, {{0, 1}, {0, 3}, {1, 3}}), 3 * 2 + 3 + 3 * 2);
}

TEST(ElementsMoved, LossStoresNothing) {
  Graph graph;
  const ValueId x = image(graph, {2, 5, 4});
  cross_entropy(graph, x, add_target(graph, x, "t"), "loss");
  EXPECT_EQ(moved(graph, {{0, 1}, {1, 3}}), 5 * 2 + 2);
}

}  // namespace
}  // namespace tessera::elements_moved_test
