#include "tessera/ops/conv/convolution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/base/error.h"
#include "tessera/ops/conv/direct_convolution.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera::convolution_test {
namespace {

std::vector<int64_t> draw_list(Draw& draw, int64_t count, int64_t low, int64_t high) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(draw.between(low, high));
  return values;
}

Shape draw_image(Draw& draw, int64_t num_spatial, int64_t channels, int64_t low, int64_t high) {
  Shape shape{draw.between(1, 2), channels};
  for (int64_t size : draw_list(draw, num_spatial, low, high)) shape.push_back(size);
  return shape;
}

template <class Build>
std::string error_of(const Shape& input, Build build) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image(input));
  try {
    build(graph, x);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Convolution, RandomOptionsOnPieces) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const int64_t num_spatial = 1 + static_cast<int64_t>(seed % 3), groups = draw.between(1, 3);
    ConvolutionOptions options;
    options.out_channels = groups * draw.between(1, 2);
    options.kernel = draw_list(draw, num_spatial, 1, 4);
    options.stride = draw_list(draw, num_spatial, 1, 3);
    options.dilation = draw_list(draw, num_spatial, 1, 2);
    // Up to more than the kernel's reach: some pieces then see padding only.
    options.padding = draw_list(draw, num_spatial, 0, 4);
    if (draw.between(0, 1)) options.padding_high = draw_list(draw, num_spatial, 0, 4);
    options.groups = groups;
    options.bias = draw.between(0, 1);
    const int64_t high = num_spatial == 3 ? 9 : 14;
    Graph graph;
    const ValueId x = graph.add_input(
        "x", ValueType::image(draw_image(draw, num_spatial, groups * draw.between(1, 2), 7, high)));
    convolution(graph, x, "conv", options);
    check_graph_node(graph, seed);
  }
}

TEST(TransposedConvolution, RandomOptionsOnPieces) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const int64_t num_spatial = 1 + static_cast<int64_t>(seed % 3), groups = draw.between(1, 3);
    TransposedConvolutionOptions options;
    options.out_channels = groups * draw.between(1, 2);
    options.kernel = draw_list(draw, num_spatial, 1, 4);
    options.stride = draw_list(draw, num_spatial, 1, 4);
    options.dilation = draw_list(draw, num_spatial, 1, 3);
    options.padding = draw_list(draw, num_spatial, 0, 2);
    options.output_padding.clear();
    for (int64_t i = 0; i < num_spatial; ++i)
      options.output_padding.push_back(
          draw.between(0, std::max(options.stride[i], options.dilation[i]) - 1));
    options.groups = groups;
    options.bias = draw.between(0, 1);
    Graph graph;
    const ValueId x = graph.add_input(
        "x", ValueType::image(draw_image(draw, num_spatial, groups * draw.between(1, 2), 5, 6)));
    transposed_convolution(graph, x, "up", options);
    check_graph_node(graph, seed, {.max_parts_per_axis = num_spatial == 3 ? 3 : 5});
  }
}

// Outputs 1 and 2 of every three are reached by no input: pieces of one pixel there are bias alone.
TEST(TransposedConvolution, PiecesThatNoInputReaches) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Graph graph;
    const ValueId x = graph.add_input("x", ValueType::image({2, 2, 3, 2}));
    transposed_convolution(
        graph, x, "up", {.out_channels = 3, .kernel = {1}, .stride = {3}, .output_padding = {2}});
    ASSERT_TRUE(
        graph.node(0).op->needed(0, {{0, 2}, {0, 3}, {1, 3}, {0, 6}}, graph.node(0).types).empty());
    check_graph_node(graph, seed, {.max_parts_per_axis = 9});
  }
}

// The up-convolution of a U-Net: its product is the piece, and becomes the output as it is.
TEST(TransposedConvolution, AlignedPiecesNeedOnlyTheirOwnInputs) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 4, 6, 8}));
  transposed_convolution(graph, x, "up", {.out_channels = 2, .kernel = {2}, .stride = {2}});
  const Node& node = graph.node(0);
  EXPECT_EQ(node.op->needed(0, {{0, 1}, {0, 2}, {4, 12}, {0, 6}}, node.types),
            (Box{{0, 1}, {0, 4}, {2, 6}, {0, 3}}));
}

TEST(Convolution, TypesAndParametersAreAsInPyTorch) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 6, 11, 16}));
  const ValueId y = convolution(graph, x, "conv",
                                {.out_channels = 8, .kernel = {3, 5}, .stride = {2}, .groups = 2});
  const ValueId z = transposed_convolution(
      graph, y, "up",
      {.out_channels = 4, .kernel = {2, 4}, .stride = {2}, .groups = 4, .bias = false});
  EXPECT_EQ(graph.type(y).shape(), (Shape{2, 8, 5, 6}));
  EXPECT_EQ(graph.type(y).axes[3], (Axis{AxisKind::kSpatial, 6, 1, {2, 1}}));
  EXPECT_EQ(graph.type(z).shape(), (Shape{2, 4, 10, 14}));
  EXPECT_EQ(graph.type(z).axes[3], (Axis{AxisKind::kSpatial, 14, 1, {1, 1}}));

  ASSERT_EQ(graph.parameters().size(), 3u);
  const auto& parameters = graph.parameters();
  EXPECT_EQ(parameters[0].name, "conv.weight");
  EXPECT_EQ(parameters[0].shape, (Shape{8, 3, 3, 5}));
  EXPECT_DOUBLE_EQ(parameters[0].initial.value, 1 / std::sqrt(3 * 3 * 5));
  EXPECT_EQ(parameters[1].name, "conv.bias");
  EXPECT_EQ(parameters[1].shape, (Shape{8}));
  EXPECT_DOUBLE_EQ(parameters[1].initial.value, 1 / std::sqrt(3 * 3 * 5));
  EXPECT_EQ(parameters[2].name, "up.weight");
  EXPECT_EQ(parameters[2].shape, (Shape{8, 1, 2, 4}));
  EXPECT_DOUBLE_EQ(parameters[2].initial.value, 1 / std::sqrt(1 * 2 * 4));
}

TEST(Convolution, FlopsCountProducts) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 4, 8, 8}));
  convolution(graph, x, "conv", {.out_channels = 6, .kernel = {3}, .padding = {1}, .groups = 2});
  const Node& node = graph.node(0);
  EXPECT_EQ(node.op->flops(Box::whole(node.types.output.shape()), node.types),
            2.0 * 6 * 64 * (2 * 9));
}

TEST(Convolution, RefusesWhatDoesNotFit) {
  const auto conv = [](const ConvolutionOptions& options, const Shape& input) {
    return error_of(input, [&](Graph& graph, ValueId x) { convolution(graph, x, "c", options); });
  };
  const Shape image{1, 4, 8, 8};
  EXPECT_EQ(conv({.out_channels = 2, .kernel = {3, 3, 3}}, image),
            "[convolution c] kernel has 3 entries; give 1, or 2 for 2 spatial axes");
  EXPECT_EQ(conv({.out_channels = 2, .kernel = {3}, .stride = {0}}, image),
            "[convolution c] stride must be at least 1, got 0");
  EXPECT_EQ(conv({.out_channels = 0, .kernel = {3}}, image),
            "[convolution c] out_channels must be at least 1, got 0");
  EXPECT_EQ(conv({.out_channels = 4, .kernel = {3}, .groups = 3}, image),
            "[convolution c] 4 input and 4 output channels must be multiples of groups = 3");
  EXPECT_EQ(
      conv({.out_channels = 2, .kernel = {3, 9}, .padding = {1, 0}}, image),
      "[convolution c] spatial axis 1 of input 1x4x8x8 is too small: kernel 9 with dilation 1 "
      "and padding 0 + 0 gives 0 outputs; enlarge the image or the padding");
  EXPECT_EQ(
      error_of(image,
               [](Graph& graph, ValueId x) {
                 transposed_convolution(
                     graph, x, "up",
                     {.out_channels = 2, .kernel = {2}, .stride = {2}, .output_padding = {2}});
               }),
      "[transposed_convolution up] output_padding 2 must be less than the stride 2 or the "
      "dilation 1");
}

// Tiles of 3x3 windows need channels and an image of some size.
TEST(Convolution, OfManyChannelsOnPieces) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const int64_t num_spatial = 2 + static_cast<int64_t>(seed % 2);
    const int64_t channels = draw.between(8, 17), low = num_spatial == 3 ? 6 : 17;
    Graph graph;
    const ValueId x = graph.add_input(
        "x", ValueType::image(draw_image(draw, num_spatial, channels, low, low + 9)));
    convolution(graph, x, "conv",
                {.out_channels = draw.between(8, 17), .kernel = {3}, .padding = {1}});
    check_graph_node(draw.between(0, 3) == 0 ? with_direct_convolutions(graph) : graph, seed);
  }
}

/// The gradient of `in` alone, from no more than what it reaches; everything around is NaN.
at::Tensor gradient_of_box(Draw& draw, const Node& node, const at::Tensor& weight,
                           const at::Tensor& grad_output, const Box& in, const Box& reached) {
  KernelArgs args;
  args.name = &node.name;
  args.types = &node.types;
  args.out_box = reached;
  const Operand whole{grad_output, Box::whole(grad_output.sizes().vec())};
  args.grad_output = {strided_copy(draw, whole.view(reached)), reached};
  const Surrounded result = surrounded(draw, in.shape(), at::kDouble);
  args.grad_inputs = {{result.view, in}};
  args.parameters = {weight};
  const ScratchBytes wish =
      node.op->scratch_bytes(Phase::kInputGradient, reached, node.types, at::kDouble);
  args.scratch = at::full({draw.between(wish.least, wish.most)}, 0xff, at::kByte);
  node.op->input_gradient(args);
  EXPECT_TRUE(result.surroundings_untouched());
  return result.view;
}

TEST(Convolution, GradientOfAnyBoxOfTheInputFromWhatItReaches) {
  int boxes = 0;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed);
    const int64_t num_spatial = 1 + static_cast<int64_t>(seed % 3), groups = draw.between(1, 2);
    const bool square = draw.between(0, 1);  // of which tiles are made
    ConvolutionOptions options;
    options.out_channels = groups * draw.between(1, 12);
    options.kernel = draw_list(draw, num_spatial, square ? 3 : 1, square ? 3 : 5);
    options.dilation = draw_list(draw, num_spatial, 1, square ? 1 : 2);
    options.padding = draw_list(draw, num_spatial, 0, 3);
    options.padding_high = draw_list(draw, num_spatial, 0, 3);
    options.groups = groups;
    options.bias = false;
    Graph graph;
    const int64_t channels = groups * draw.between(1, 12);
    const ValueId x = graph.add_input(
        "x",
        ValueType::image(draw_image(draw, num_spatial, channels, 9, num_spatial > 2 ? 12 : 30)));
    convolution(graph, x, "conv", options);
    const Node& node = graph.node(0);
    const at::Tensor weight = draw.uniform(graph.parameters()[node.parameters[0]].shape, -1, 1);
    const at::Tensor grad_output = draw.uniform(node.types.output.shape(), -1, 1);
    const Box image = Box::whole(node.types.inputs[0].shape());
    // Of the image with its padding, by the library.
    const Box padded = node.op->needed(0, Box::whole(node.types.output.shape()), node.types);
    const std::vector<int64_t> none(num_spatial, 0), ones(num_spatial, 1);
    const at::Tensor expected = std::get<0>(at::convolution_backward(
        grad_output, at::zeros(padded.shape(), at::kDouble), weight, c10::nullopt, ones, none,
        options.dilation, false, none, groups, {true, false, false}));
    for (int round = 0; round < 6; ++round) {
      Box in = image;
      for (int axis = 2; axis < in.num_axes(); ++axis) {
        const int64_t begin = draw.between(0, in[axis].end - 1);
        in[axis] = {begin, draw.between(begin + 1, in[axis].end)};
      }
      const std::optional<Box> reached = node.op->reached(0, in, node.types);
      ASSERT_TRUE(reached.has_value());
      at::Tensor there = expected;
      for (int axis = 2; axis < in.num_axes(); ++axis)
        there = there.narrow(axis, in[axis].begin + options.padding[axis - 2], in[axis].size());
      if (reached->empty()) {
        EXPECT_EQ(there.abs().max().item<double>(), 0);
        continue;
      }
      const at::Tensor found = gradient_of_box(draw, node, weight, grad_output, in, *reached);
      EXPECT_LE((found - there).abs().max().item<double>(), 1e-11) << to_string(in);
      ++boxes;
    }
  }
  EXPECT_GT(boxes, 300);
}

TEST(Convolution, WithAStrideGivesGradientsByPiecesOfTheOutput) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 8, 8}));
  convolution(graph, x, "conv", {.out_channels = 2, .kernel = {3}, .stride = {1, 2}});
  const Node& node = graph.node(0);
  EXPECT_FALSE(node.op->reached(0, Box::whole({1, 2, 8, 8}), node.types).has_value());
}

TEST(Convolution, DirectOnesPackNoTiles) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 32, 32, 32}));
  transposed_convolution(
      graph, convolution(graph, x, "conv", {.out_channels = 32, .kernel = {3}, .padding = {1}}),
      "up", {.out_channels = 32, .kernel = {3}});
  const Graph direct = with_direct_convolutions(graph);
  ASSERT_EQ(direct.nodes().size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Node &before = graph.nodes()[i], &after = direct.nodes()[i];
    EXPECT_EQ(after.op->kind(), before.op->kind());
    EXPECT_EQ(after.op->settings(), before.op->settings());
    const auto asked = [](const Node& node) {
      return node.op->scratch_bytes(Phase::kForward, {}, node.types, at::kFloat).most;
    };
    EXPECT_EQ(asked(before), 32 * 32 * 36 * 4);
    EXPECT_EQ(asked(after), 32 * 32 * 9 * 4);
  }
}

}  // namespace
}  // namespace tessera::convolution_test
