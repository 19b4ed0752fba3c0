// Sums and means over spatial axes. Over all of them the lowering puts partial sums in their place.

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/graph/reference.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/partial.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::spatial_reduction_test {
namespace {

using How = SpatialReductionOptions::How;

class SpatialReductions : public testing::TestWithParam<uint64_t> {
 protected:
  /// Batch, channels, and so many spatial axes.
  Shape draw_shape(int64_t num_spatial) {
    Shape shape{draw.between(1, 3), draw.between(1, 4)};
    for (int64_t axis = 0; axis < num_spatial; ++axis) shape.push_back(draw.between(1, 8));
    return shape;
  }

  testing::ScopedTrace trace{__FILE__, __LINE__, testing::Message() << "seed " << GetParam()};
  Draw draw{GetParam()};
  Graph graph;
};
INSTANTIATE_TEST_SUITE_P(Seeds, SpatialReductions, testing::Range<uint64_t>(1, 26));

TEST_P(SpatialReductions, OverSomeAxes) {
  const int64_t num_spatial = draw.between(2, 3);
  SpatialReductionOptions options;
  options.how = draw.between(0, 1) ? How::kSum : How::kMean;
  for (int axis = 0; axis < num_spatial; ++axis) options.axes.push_back(axis);
  draw.shuffle(options.axes);
  options.axes.resize(draw.between(1, num_spatial - 1));
  const ValueId x = graph.add_input("x", ValueType::image(draw_shape(num_spatial)));
  spatial_reduction(graph, x, "op", options);
  check_graph_node(graph, GetParam());
}

TEST_P(SpatialReductions, PartsAddUpToTheWhole) {
  const Shape shape = draw_shape(draw.between(1, 3));
  SpatialReductionOptions options;
  options.how = draw.between(0, 1) ? How::kSum : How::kMean;
  options.keep_axes = draw.between(0, 1) == 1;
  graph.mark_output(
      spatial_reduction(graph, graph.add_input("x", ValueType::image(shape)), "op", options));
  const Node& node = graph.node(0);
  const at::Tensor x = draw.uniform(shape, -1, 1);
  std::vector<at::Tensor> none;
  const at::Tensor whole = run_reference(graph, {x}, none, 0, 0).outputs[0];
  const Box space = Box::whole(Shape(shape.begin() + 2, shape.end()));
  Box first = space, second = space;
  first[0].end = second[0].begin = draw.between(0, space[0].end);
  const PartialSum partial({first, second}, *whole_space_scale(*node.op, node.types));
  const std::vector<Axis>& axes = node.types.output.axes;
  const SumParts sum(std::vector<Axis>(axes.begin() + 2, axes.end()));
  const at::Tensor parts = partial.reference({.inputs = {x}, .parameters = {}, .buffers = {}});
  const at::Tensor total = sum.reference({.inputs = {parts}, .parameters = {}, .buffers = {}});
  EXPECT_EQ(total.sizes().vec(), node.types.output.shape());
  EXPECT_TRUE(at::allclose(total, whole, 1e-12, 1e-14));
}

TEST_P(SpatialReductions, SumPartsWithKeptAxes) {
  const Shape shape{draw.between(1, 4), draw.between(1, 5), draw.between(1, 6)};
  ValueType type = ValueType::image(shape);
  type.axes[2] = {AxisKind::kPart, shape[2], -1, {}};
  std::vector<Axis> kept;
  for (int index = 0; index < draw.between(1, 3); ++index)
    kept.push_back({AxisKind::kSpatial, 1, index, Ratio::of(7, 1)});
  const at::Tensor parts = draw.uniform(shape, -1, 1);
  check_op(SumParts(kept), {type}, {parts}, {}, {}, GetParam());
  check_op(SumParts(kept), {type}, {parts}, {draw.uniform({shape[1]}, -1, 1)}, {}, GetParam());
}

class SpatialReductionRules : public testing::Test {
 protected:
  Graph graph;
  ValueId x = graph.add_input("x", ValueType::image({2, 5, 6, 4}));
};

TEST_F(SpatialReductionRules, Types) {
  const ValueType all = graph.type(spatial_reduction(graph, x, "all", {}));
  EXPECT_EQ(all.shape(), (Shape{2, 5, 1, 1}));
  EXPECT_EQ(all.axes[2], (Axis{AxisKind::kSpatial, 1, 0, Ratio::of(6, 1)}));
  EXPECT_EQ(all.axes[3], (Axis{AxisKind::kSpatial, 1, 1, Ratio::of(4, 1)}));
  EXPECT_EQ(graph.type(spatial_reduction(graph, x, "rows", {.axes = {1}})).shape(),
            (Shape{2, 5, 6, 1}));
  EXPECT_EQ(graph.type(spatial_reduction(graph, x, "no_space", {.keep_axes = false})).shape(),
            (Shape{2, 5}));
  EXPECT_EQ(graph.type(global_average_pool(graph, x)).shape(), (Shape{2, 5}));
}

TEST_F(SpatialReductionRules, OnlyTheWholeSpaceIsSummedByParts) {
  const auto scale = [&](const SpatialReductionOptions& options) {
    spatial_reduction(graph, x, "op", options);
    return whole_space_scale(*graph.nodes().back().op, graph.nodes().back().types);
  };
  EXPECT_EQ(scale({}), 1.0 / 24);
  EXPECT_EQ(scale({.how = How::kSum}), 1.0);
  EXPECT_EQ(scale({.axes = {1, 0}}), 1.0 / 24);
  EXPECT_EQ(scale({.axes = {1}}), std::nullopt);
}

TEST_F(SpatialReductionRules, WholeSpaceMustBeRewrittenBeforeItRuns) {
  spatial_reduction(graph, x, "op", {});
  const Node& node = graph.node(0);
  EXPECT_EQ(node.op->needed(0, {{1, 2}, {0, 5}, {0, 1}, {0, 1}}, node.types),
            (Box{{1, 2}, {0, 5}, {0, 6}, {0, 4}}));
  KernelArgs args;
  args.name = &node.name;
  EXPECT_THROW(node.op->forward(args), InternalError);
  EXPECT_THROW(node.op->input_gradient(args), InternalError);
}

TEST_F(SpatialReductionRules, Refusals) {
  EXPECT_THROW(spatial_reduction(graph, x, "op", {.axes = {2}}), InvalidInput);
  EXPECT_THROW(spatial_reduction(graph, x, "op", {.axes = {-1}}), InvalidInput);
  EXPECT_THROW(spatial_reduction(graph, x, "op", {.axes = {0, 0}}), InvalidInput);
  EXPECT_THROW(spatial_reduction(graph, x, "op", {.axes = {0}, .keep_axes = false}), InvalidInput);
  const ValueId features = global_average_pool(graph, x);
  EXPECT_THROW(spatial_reduction(graph, features, "op", {}), InvalidInput);
}

}  // namespace
}  // namespace tessera::spatial_reduction_test
