// Receptive fields, against the known numbers of famous networks and a walk pixel by pixel.

#include "tessera/inspect/receptive_field.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "tessera/base/error.h"
#include "tessera/inspect/table.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/inspect/example_graphs.h"

namespace tessera::receptive_field_test {
namespace {

ValueId value_named(const Graph& graph, const std::string& name) {
  for (size_t id = 0; id < graph.values().size(); ++id)
    if (graph.values()[id].name == name) return static_cast<ValueId>(id);
  throw std::runtime_error("no value " + name);
}

std::string field_text(const Graph& graph, const std::string& value) {
  return to_string(receptive_fields(graph)[value_named(graph, value)]);
}

TEST(ReceptiveField, OfVgg16) {
  const Graph graph = vgg_graph({1, 3, 1024, 1024}, {2, 2, 3, 3, 3});
  EXPECT_EQ(field_text(graph, "image"), "1x1");
  EXPECT_EQ(field_text(graph, "block1.2"), "5x5");
  EXPECT_EQ(field_text(graph, "pool1"), "6x6");
  EXPECT_EQ(field_text(graph, "pool3"), "44x44");
  EXPECT_EQ(field_text(graph, "block5.3.relu"), "196x196");
  EXPECT_EQ(field_text(graph, "pool5"), "212x212");
  EXPECT_EQ(field_text(graph, "global_average_pool"), "all");
  EXPECT_EQ(field_text(graph, "loss"), "all");
}

TEST(ReceptiveField, OfDilatedConvolutions) {
  Graph graph = image_graph({1, 1, 128, 128});
  ValueId x = 0;
  for (int64_t dilation : {1, 2, 4, 8})
    x = convolution(
        graph, x, fmt::format("conv{}", dilation),
        {.out_channels = 1, .kernel = {3}, .dilation = {dilation}, .padding = {dilation}});
  EXPECT_EQ(field_text(graph, "conv4"), "15x15");
  EXPECT_EQ(field_text(graph, "conv8"), "31x31");
}

TEST(ReceptiveField, OfStridesAndUnequalAxes) {
  Graph graph = image_graph({1, 1, 200, 100});
  ValueId x = convolution(
      graph, 0, "conv", {.out_channels = 1, .kernel = {7, 3}, .stride = {2, 1}, .padding = {3, 1}});
  max_pool(graph, x, "pool", {.kernel = {3}, .stride = {2}, .padding = {1}});
  EXPECT_EQ(field_text(graph, "conv"), "7x3");
  EXPECT_EQ(field_text(graph, "pool"), "11x5");
}

TEST(ReceptiveField, OfAUnetGrowsThroughTheBottleneck) {
  const Graph graph = build_model("unet2d:base=2,depth=3", {1, 3, 256, 256});
  EXPECT_EQ(field_text(graph, "enc1.relu2"), "5x5");
  EXPECT_EQ(field_text(graph, "enc2.relu2"), "14x14");
  EXPECT_EQ(field_text(graph, "bottleneck.relu2"), "32x32");
  EXPECT_EQ(field_text(graph, "up2"), "32x32");
  // The skip is seen from the middle of the field; the bottleneck's decides.
  EXPECT_EQ(field_text(graph, "dec2.concat"), "32x32");
  EXPECT_EQ(field_text(graph, "dec2.conv1"), "36x36");
}

TEST(ReceptiveField, TellsTheWholeImageFromAPartThatTouchesIt) {
  Graph graph = image_graph({1, 1, 9});
  ValueId x = 0;
  for (int i = 1; i <= 4; ++i)
    x = convolution(graph, x, fmt::format("conv{}", i),
                    {.out_channels = 1, .kernel = {3}, .padding = {1}});
  const std::vector<ReceptiveField> fields = receptive_fields(graph);
  EXPECT_EQ(fields[3].axes[0], (FieldAxis{{1, 8}, 9}));
  EXPECT_FALSE(fields[3].axes[0].at_border());
  EXPECT_TRUE(fields[4].axes[0].whole());
  Graph low = image_graph({1, 1, 9});  // it reaches before the image, but not its end
  convolution(low, 0, "conv", {.out_channels = 1, .kernel = {8}, .padding = {7}});
  EXPECT_EQ(field_text(low, "conv"), "≥8");
}

TEST(ReceptiveField, FollowsACrop) {
  Graph graph = image_graph({1, 1, 40});
  const ValueId x = convolution(graph, 0, "conv", {.out_channels = 1, .kernel = {3}});
  pad(graph, x, "crop", {{-20}, {0}});  // 18 pixels are left, the middle is pixel 29 of conv
  EXPECT_EQ(receptive_fields(graph)[2].axes[0].range, (Range{29, 32}));
}

TEST(ReceptiveField, LabelsAreNotAnImage) {
  Graph graph = image_graph({1, 3, 16, 16});
  cross_entropy(graph, 0, add_target(graph, 0, "target"), "loss");
  EXPECT_EQ(field_text(graph, "loss"), "1x1");
  EXPECT_EQ(field_text(graph, "target"), "-");
}

TEST(ReceptiveField, OfTwoImagesIsThatOfTheFirstSeen) {
  Graph graph;
  const ValueId a = graph.add_input("a", ValueType::image({1, 1, 32}));
  const ValueId b = graph.add_input("b", ValueType::image({1, 1, 32}));
  const ValueId from_a = convolution(graph, a, "ca", {1, {3}, {1}, {1}, {1}});
  const ValueId from_b = convolution(graph, b, "cb", {1, {7}, {1}, {1}, {3}});
  const ValueId both = add(graph, from_b, from_a, "add");
  const std::vector<ReceptiveField> fields = receptive_fields(graph);
  EXPECT_EQ(fields[from_b].image, b);
  EXPECT_EQ(fields[from_b].axes[0].pixels(), 7);
  EXPECT_EQ(fields[both].image, a);
  EXPECT_EQ(fields[both].axes[0].pixels(), 3);
}

// The walk pixel by pixel: sets of pixels instead of boxes, and no short cuts.

using Pixel = std::array<int64_t, 2>;
using Pixels = std::set<Pixel>;

Pixels pixels_read(const Node& node, int input, const Pixel& out) {
  Box box = Box::whole(node.types.output.shape());
  for (int i = 0; i < 2; ++i) box[2 + i] = {out[i], out[i] + 1};
  const Box need = intersect(node.op->needed(input, box, node.types),
                             Box::whole(node.types.inputs[input].shape()));
  Pixels pixels;
  if (need.empty()) return pixels;
  for (int64_t y = need[2].begin; y < need[2].end; ++y)
    for (int64_t x = need[3].begin; x < need[3].end; ++x) pixels.insert({y, x});
  return pixels;
}

std::vector<FieldAxis> field_by_pixels(const Graph& graph, ValueId value) {
  std::vector<Pixels> reached(graph.values().size());
  const Shape shape = graph.type(value).shape(), image = graph.type(0).shape();
  reached[value] = {{shape[2] / 2, shape[3] / 2}};
  for (NodeId id = graph.value(value).producer; id >= 0; --id) {
    const Node& node = graph.node(id);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      for (const Pixel& pixel : reached[node.output])
        reached[node.inputs[i]].merge(pixels_read(node, static_cast<int>(i), pixel));
  }
  std::vector<FieldAxis> axes;
  for (int i = 0; i < 2; ++i) {
    Range range{image[2 + i], 0};
    for (const Pixel& pixel : reached[0])
      range = {std::min(range.begin, pixel[i]), std::max(range.end, pixel[i] + 1)};
    axes.push_back({range, image[2 + i]});
  }
  return axes;
}

/// One more operator on values of the graph; may not fit, and throws then. No pixel of an output
/// sees padding alone: a box around two branches holds such pixels, a set of pixels does not.
ValueId add_random_operator(Graph& graph, const std::vector<ValueId>& images, std::mt19937& random,
                            const std::string& name) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const ValueId x = images[draw(0, 2) == 0 ? draw(0, images.size() - 1) : images.size() - 1];
  const ValueId other = images[draw(0, images.size() - 1)];
  switch (draw(0, 6)) {
    case 0: {
      const int64_t kernel = draw(1, 4);
      return convolution(graph, x, name,
                         {.out_channels = 2,
                          .kernel = {kernel, draw(3, 5)},
                          .stride = {draw(1, 2), draw(1, 2)},
                          .dilation = {draw(1, 2), draw(1, 2)},
                          .padding = {draw(0, kernel - 1), draw(0, 2)}});
    }
    case 1:
      return max_pool(graph, x, name, {.kernel = {draw(2, 3)}, .stride = {draw(1, 2)}});
    case 2:
      return transposed_convolution(
          graph, x, name,
          {.out_channels = 2, .kernel = {draw(2, 4)}, .stride = {2}, .padding = {draw(0, 1)}});
    case 3:
      return interpolate(graph, x, name,
                         {.mode = InterpolationMode::kLinear, .size = {draw(8, 30), draw(8, 30)}});
    case 4:
      return pad(graph, x, name, {{draw(-2, 0), draw(-2, 0)}, {draw(-2, 0), draw(-2, 0)}});
    case 5:
      return add(graph, x, other, name);
    default:
      return concat(graph, {x, other}, name);
  }
}

TEST(ReceptiveField, EqualsAWalkPixelByPixel) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Graph graph = image_graph({2, 2, 28, 23});
    std::vector<ValueId> images{0};
    while (images.size() < 9) {
      try {
        images.push_back(
            add_random_operator(graph, images, random, fmt::format("op{}", images.size())));
      } catch (const InvalidInput&) {  // what was drawn does not fit
      }
    }
    const std::vector<ReceptiveField> fields = receptive_fields(graph);
    for (ValueId value : images) {
      SCOPED_TRACE(graph.value(value).name);
      EXPECT_EQ(fields[value].axes, field_by_pixels(graph, value));
    }
  }
}

TEST(ReceptiveField, OfADeepNetwork) {
  const Graph graph = residual_graph({1, 3, 4096, 4096}, 125);  // 3000 operators
  EXPECT_GE(graph.nodes().size(), 3000u);
  // 2 convolutions a block: the stem's 3 and 2 more pixels for each.
  EXPECT_EQ(field_text(graph, "stage1.125.add"), fmt::format("{0}x{0}", 3 + 125 * 4));
}

}  // namespace
}  // namespace tessera::receptive_field_test
