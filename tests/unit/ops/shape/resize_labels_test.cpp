// Labels at random sizes, on one to three spatial axes.

#include "tessera/ops/shape/resize_labels.h"

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::resize_labels_test {
namespace {

/// Batch x space.
ValueType label_type(const Shape& shape) {
  Shape with_channels = shape;
  with_channels.insert(with_channels.begin() + 1, 1);
  ValueType type = ValueType::image(with_channels);
  type.axes.erase(type.axes.begin() + 1);
  type.element = Element::kIndex;
  return type;
}

class RandomLabels : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomLabels, testing::Range<uint64_t>(0, 30));

TEST_P(RandomLabels, MatchReference) {
  std::mt19937_64 engine(GetParam());
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  };
  Shape shape{between(1, 3)};
  std::vector<int64_t> size;
  for (int64_t axis = between(1, 3); axis > 0; --axis) {
    shape.push_back(between(1, 12));
    size.push_back(between(1, 16));
  }
  Graph graph;
  resize_labels(graph, graph.add_input("labels", label_type(shape)), "resize", size);
  SCOPED_TRACE(fmt::format("seed {}, {} to {}", GetParam(), to_string(shape), to_string(size)));
  check_graph_node(graph, GetParam());
}

TEST(ResizeLabels, KeepsLabelsAndMultipliesStrides) {
  Graph graph;
  const ValueId labels = graph.add_input("labels", label_type({2, 12, 9}));
  const ValueType type = graph.type(resize_labels(graph, labels, "resize", {4, 6}));
  EXPECT_EQ(type.element, Element::kIndex);
  EXPECT_EQ(type.shape(), (Shape{2, 4, 6}));
  EXPECT_EQ(type.axes[1].stride, Ratio::of(3, 1));
  EXPECT_EQ(type.axes[2].stride, Ratio::of(3, 2));
  EXPECT_FALSE(graph.node(0).op->differentiable(0));
}

TEST(ResizeLabels, RefusesWhatDoesNotFit) {
  Graph graph;
  const ValueId labels = graph.add_input("labels", label_type({2, 12, 9}));
  EXPECT_THROW(resize_labels(graph, labels, "resize", {4}), InvalidInput);
  EXPECT_THROW(resize_labels(graph, labels, "resize", {4, 0}), InvalidInput);
  const ValueId image = graph.add_input("image", ValueType::image({1, 2, 4, 5}));
  EXPECT_THROW(resize_labels(graph, image, "resize", {4, 5}), InvalidInput);
  ValueType classes;
  classes.axes = {{AxisKind::kBatch, 4, -1, {}}};
  classes.element = Element::kIndex;
  EXPECT_THROW(resize_labels(graph, graph.add_input("classes", classes), "resize", {}),
               InvalidInput);
}

}  // namespace
}  // namespace tessera::resize_labels_test
