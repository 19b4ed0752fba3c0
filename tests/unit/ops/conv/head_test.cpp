#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/graph/reference.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/partial.h"
#include "tessera/ops/shape/flatten.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::head_test {
namespace {

Shape draw_image(Draw& draw, int num_spatial) {
  Shape shape{draw.between(1, 4), draw.between(1, 5)};
  for (int axis = 0; axis < num_spatial; ++axis) shape.push_back(draw.between(2, 7));
  return shape;
}

Shape space_of(const Shape& image) { return {image.begin() + 2, image.end()}; }

/// An irregular grid of cells that covers the space once, and an empty cell among them.
std::vector<Box> draw_cells(Draw& draw, const Shape& space) {
  std::vector<Box> cells{Box()};
  for (int64_t size : space) {
    const int64_t cut = draw.between(1, size - 1);
    std::vector<Box> longer;
    for (const Box& cell : cells)
      for (const Range& range : {Range{0, cut}, Range{cut, size}}) {
        longer.push_back(cell);
        longer.back().push_back(range);
      }
    cells = longer;
  }
  Box nothing = cells[0];
  nothing[0].end = nothing[0].begin;
  cells.insert(cells.begin() + draw.between(0, static_cast<int64_t>(cells.size())), nothing);
  return cells;
}

at::Tensor run(const Op& op, const std::vector<at::Tensor>& inputs,
               const std::vector<at::Tensor>& parameters = {}) {
  return op.reference({.inputs = inputs, .parameters = parameters, .buffers = {}});
}

class Heads : public testing::TestWithParam<uint64_t> {
 protected:
  Heads() : draw(GetParam()), image(draw_image(draw, 1 + static_cast<int>(GetParam() % 3))) {}

  testing::ScopedTrace trace{__FILE__, __LINE__, testing::Message() << "seed " << GetParam()};
  Draw draw;
  Shape image;
};

TEST_P(Heads, Linear) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image(image));
  linear(graph, flatten(graph, x), "fc",
         {.out_features = draw.between(1, 5), .bias = draw.between(0, 1) == 1});
  check_graph_node(graph, GetParam());  // flatten, too
}

TEST_P(Heads, PartialSum) {
  const PartialSum op(draw_cells(draw, space_of(image)), 0.3);
  for (bool unit : {true, false})
    check_op(op, {ValueType::image(image)}, {draw.uniform(image, -1, 1)}, {}, {}, GetParam(),
             {.unit_part_axis = unit});
}

TEST_P(Heads, PartialLinear) {
  const int64_t out_features = draw.between(1, 4);
  const int64_t in_features = Box::whole(image).volume() / image[0];
  const PartialLinear op(draw_cells(draw, space_of(image)), space_of(image), out_features);
  for (bool unit : {true, false})
    check_op(op, {ValueType::image(image)}, {draw.uniform(image, -1, 1)},
             {draw.uniform({out_features, in_features}, -1, 1)}, {}, GetParam(),
             {.unit_part_axis = unit});
}

TEST_P(Heads, SumParts) {
  const Shape shape{draw.between(1, 4), draw.between(1, 5), draw.between(1, 6)};
  ValueType type = ValueType::image(shape);
  type.axes[2] = {AxisKind::kPart, shape[2], -1, {}};
  check_op(SumParts(), {type}, {draw.uniform(shape, -1, 1)}, {}, {}, GetParam());
  check_op(SumParts(), {type}, {draw.uniform(shape, -1, 1)}, {draw.uniform({shape[1]}, -1, 1)}, {},
           GetParam());
}

TEST_P(Heads, PartialSumsAddUpToTheMean) {
  const Shape space = space_of(image);
  const auto volume = static_cast<double>(Box::whole(space).volume());
  const at::Tensor x = draw.uniform(image, -1, 1);
  Graph graph;
  graph.mark_output(global_average_pool(graph, graph.add_input("x", ValueType::image(image))));
  std::vector<at::Tensor> parameters;
  const at::Tensor mean = run_reference(graph, {x}, parameters, 0, 0).outputs[0];
  const at::Tensor sums = run(PartialSum(draw_cells(draw, space), 1 / volume), {x});
  EXPECT_TRUE(at::allclose(run(SumParts(), {sums}), mean, 1e-12, 1e-14));
}

TEST_P(Heads, PartialProductsAddUpToTheLinearLayer) {
  const Shape space = space_of(image);
  const at::Tensor x = draw.uniform(image, -1, 1);
  Graph graph;
  const ValueId input = graph.add_input("x", ValueType::image(image));
  graph.mark_output(linear(graph, flatten(graph, input), "fc", {.out_features = 3}));
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, GetParam()));
  const at::Tensor product = run_reference(graph, {x}, parameters, 0, 0).outputs[0];
  const PartialLinear partial(draw_cells(draw, space), space, 3);
  const at::Tensor sum = run(SumParts(), {run(partial, {x}, {parameters[0]})}, {parameters[1]});
  EXPECT_TRUE(at::allclose(sum, product, 1e-12, 1e-14));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Heads, testing::Range<uint64_t>(0, 12));

TEST(Linear, StartsAsInPyTorch) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 5, 3, 3}));
  linear(graph, flatten(graph, x), "fc", {.out_features = 7});
  ASSERT_EQ(graph.parameters().size(), 2u);
  EXPECT_EQ(graph.parameters()[0].name, "fc.weight");
  EXPECT_EQ(graph.parameters()[0].shape, (Shape{7, 45}));
  EXPECT_DOUBLE_EQ(graph.parameters()[0].initial.value, 1 / std::sqrt(45));
  EXPECT_EQ(graph.parameters()[1].name, "fc.bias");
  EXPECT_DOUBLE_EQ(graph.parameters()[1].initial.value, 1 / std::sqrt(45));
}

TEST(Linear, OfAnImageIsOfEachPixel) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Graph graph;
    Shape shape{2, 5, 4};
    for (uint64_t extra = 1; extra < 1 + seed % 3; ++extra) shape.push_back(3);
    const ValueId x = graph.add_input("x", ValueType::image(shape));
    linear(graph, x, "fc", {.out_features = 7, .bias = seed % 2 == 0});
    check_graph_node(graph, seed);
  }
}

// A range of parts whose hull holds pixels of neither: their gradient is zero, not left as it was.
TEST(PartialSum, SeveralPartsInOnePiece) {
  const Shape image{2, 3, 4, 5};
  const std::vector<Box> cells{{{0, 2}, {0, 2}}, {{2, 4}, {3, 5}}};
  const at::Tensor x = Draw(1).uniform(image, -1, 1);
  check_op(PartialSum(cells, 2), {ValueType::image(image)}, {x}, {}, {}, 1);
  check_op(PartialLinear(cells, {4, 5}, 2), {ValueType::image(image)}, {x},
           {Draw(2).uniform({2, 60}, -1, 1)}, {}, 1);
}

TEST(PartialSum, RefusesCellsOutsideTheImage) {
  const std::vector<ValueType> inputs{ValueType::image({1, 2, 4, 4})};
  EXPECT_THROW(PartialSum({{{0, 4}, {0, 5}}}, 1).infer_type(inputs), InvalidInput);
  EXPECT_THROW(PartialSum({Box{{0, 4}}}, 1).infer_type(inputs), InvalidInput);
}

TEST(GlobalAveragePool, MustBeRewrittenBeforeItRuns) {
  Graph graph;
  const ValueId y =
      global_average_pool(graph, graph.add_input("x", ValueType::image({2, 5, 3, 4})));
  EXPECT_EQ(graph.type(y).shape(), (Shape{2, 5}));
  const Node& node = graph.node(0);
  EXPECT_EQ(node.op->needed(0, {{1, 2}, {0, 5}}, node.types),
            (Box{{1, 2}, {0, 5}, {0, 3}, {0, 4}}));
  KernelArgs args;
  args.name = &node.name;
  EXPECT_THROW(node.op->forward(args), InternalError);
  EXPECT_THROW(node.op->input_gradient(args), InternalError);
}

}  // namespace
}  // namespace tessera::head_test
