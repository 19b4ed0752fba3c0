// Where a graph is drawn: boxes do not overlap, and lines do not cross them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tessera/inspect/graph_layout.h"
#include "tessera/inspect/spread_out.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/inspect/example_graphs.h"

namespace tessera::layout_test {
namespace {

/// All boxes, from top to bottom.
std::vector<Rect> boxes_of(const GraphLayout& layout) {
  std::vector<Rect> boxes = layout.nodes;
  boxes.insert(boxes.end(), layout.inputs.begin(), layout.inputs.end());
  std::ranges::sort(boxes, {}, &Rect::y);
  return boxes;
}

/// Those that a height may fall into: the tallest box is `kTallest` high.
constexpr double kTallest = 60;
auto boxes_near(const std::vector<Rect>& boxes, double y) {
  return std::ranges::subrange(std::ranges::lower_bound(boxes, y - kTallest, {}, &Rect::y),
                               std::ranges::upper_bound(boxes, y, {}, &Rect::y));
}

void expect_no_overlaps(const GraphLayout& layout) {
  const std::vector<Rect> boxes = boxes_of(layout);
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].x, -1e-6);
    EXPECT_LE(boxes[i].right(), layout.width + 1e-6);
    EXPECT_LE(boxes[i].bottom(), layout.height + 1e-6);
    ASSERT_LE(boxes[i].height, kTallest);
    for (size_t j = i + 1; j < boxes.size() && boxes[j].y < boxes[i].bottom(); ++j)
      EXPECT_FALSE(boxes[i].overlaps(boxes[j])) << i << " and " << j;
  }
}

Point point_on(const std::vector<Point>& points, size_t curve, double t) {
  const double s = 1 - t;
  const double weights[] = {s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t};
  Point point;
  for (size_t i = 0; i < 4; ++i) {
    point.x += weights[i] * points[3 * curve + i].x;
    point.y += weights[i] * points[3 * curve + i].y;
  }
  return point;
}

/// Up to half a pixel: lines begin and end on the sides of their boxes.
bool is_inside(const Rect& box, const Point& point) {
  return point.x > box.x + 0.5 && point.x < box.right() - 0.5 && point.y > box.y + 0.5 &&
         point.y < box.bottom() - 0.5;
}

void expect_no_crossings(const GraphLayout& layout) {
  const std::vector<Rect> boxes = boxes_of(layout);
  for (const EdgePath& edge : layout.edges) {
    ASSERT_EQ(edge.points.size() % 3, 1u);
    for (size_t curve = 0; 3 * curve + 3 < edge.points.size(); ++curve) {
      const double length = std::abs(edge.points[3 * curve + 3].y - edge.points[3 * curve].y) +
                            std::abs(edge.points[3 * curve + 3].x - edge.points[3 * curve].x);
      const int steps = 4 + static_cast<int>(length / 8);
      for (int i = 0; i <= steps; ++i) {
        const Point point = point_on(edge.points, curve, static_cast<double>(i) / steps);
        for (const Rect& box : boxes_near(boxes, point.y))
          ASSERT_FALSE(is_inside(box, point)) << "the line of value " << edge.value;
      }
    }
  }
}

void expect_good_layout(const Graph& graph) {
  const GraphLayout layout = layout_graph(graph);
  EXPECT_EQ(layout.nodes.size(), graph.nodes().size());
  EXPECT_EQ(layout.inputs.size(), graph.inputs().size());
  size_t num_edges = 0;
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    if (!layout.is_light[id]) num_edges += graph.nodes()[id].inputs.size();
  EXPECT_EQ(layout.edges.size(), num_edges);
  expect_no_overlaps(layout);
  expect_no_crossings(layout);
}

TEST(Layout, OfSegmentationNetworks) {
  expect_good_layout(build_model("unet2d:base=2"));
  expect_good_layout(build_model("unet3d:base=2"));
  expect_good_layout(build_model("fcn2d:width=0.01"));
}

TEST(Layout, OfResidualNetworks) { expect_good_layout(residual_graph({1, 3, 64, 64}, 3)); }

TEST(Layout, OfThreeThousandOperators) {
  const Graph graph = residual_graph({1, 3, 64, 64}, 125);
  ASSERT_GE(graph.nodes().size(), 3000u);
  expect_good_layout(graph);
}

TEST(Layout, OfDenseNetworks) { expect_good_layout(dense_graph({1, 3, 32, 32}, 48)); }

TEST(Layout, OfBranches) { expect_good_layout(inception_graph({1, 3, 256, 256}, 6)); }

TEST(Layout, OfGraphsWithoutOperatorsOrWithLooseEnds) {
  expect_good_layout(image_graph({1, 1, 4}));
  expect_good_layout(Graph());
  Graph graph = image_graph({1, 1, 8});
  graph.add_input("unread", ValueType::image({1, 1, 8}));
  for (const char* name : {"a", "b", "c", "d", "e"})
    convolution(graph, 0, name, {.out_channels = 1, .kernel = {3}});
  add(graph, 0, 0, "twice");
  expect_good_layout(graph);
}

TEST(Layout, RunsFromTopToBottom) {
  const Graph graph = build_model("unet2d:base=2");
  const GraphLayout layout = layout_graph(graph);
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    for (ValueId input : graph.nodes()[id].inputs) {
      const NodeId producer = graph.value(input).producer;
      if (producer < 0) continue;
      EXPECT_GE(layout.nodes[id].y, layout.nodes[producer].bottom());
    }
}

TEST(Layout, StacksWhatOnlyFollows) {
  Graph graph = image_graph({1, 1, 8});
  const ValueId x = convolution(graph, 0, "conv", {.out_channels = 1, .kernel = {1}});
  const ValueId y = relu(graph, x, "only reader");
  relu(graph, y, "one of two");
  convolution(graph, y, "other", {.out_channels = 1, .kernel = {1}});
  const GraphLayout layout = layout_graph(graph);
  EXPECT_EQ(layout.is_light, (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(layout.nodes[1].x, layout.nodes[0].x);
  EXPECT_LT(layout.nodes[1].y - layout.nodes[0].bottom(), 5);
}

TEST(Layout, ALevelOfResolutionIsAColumn) {
  const Graph graph = build_model("unet2d:base=2,depth=3");
  const GraphLayout layout = layout_graph(graph);
  std::vector<std::pair<int64_t, double>> columns;  // height of the image, x
  for (size_t id = 0; id + 1 < graph.nodes().size(); ++id)
    columns.emplace_back(graph.nodes()[id].types.output.axes[2].size, layout.nodes[id].x);
  for (const auto& [size, x] : columns)
    for (const auto& [other_size, other_x] : columns)
      EXPECT_TRUE(size == other_size ? std::abs(x - other_x) < 1e-6
                                     : (size > other_size) == (x < other_x));
}

TEST(SpreadOut, KeepsWhatFitsAndMovesTheRestLeast) {
  EXPECT_EQ(spread_out({}, 10), (std::vector<double>{}));
  EXPECT_EQ(spread_out({0, 20, 50}, 10), (std::vector<double>{0, 20, 50}));
  EXPECT_EQ(spread_out({5, 5}, 10), (std::vector<double>{0, 10}));
  EXPECT_EQ(spread_out({5, 5, 5, 100}, 10), (std::vector<double>{-5, 5, 15, 100}));
}

}  // namespace
}  // namespace tessera::layout_test
