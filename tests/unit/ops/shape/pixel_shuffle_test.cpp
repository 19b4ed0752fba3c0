// Rearrangements of channels and pixels, on pieces that do not lie on multiples of the factor.

#include "tessera/ops/shape/pixel_shuffle.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::pixel_shuffle_test {
namespace {

class Shuffles : public testing::TestWithParam<uint64_t> {
 protected:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine);
  }
  ValueId image(const Shape& shape) { return graph.add_input("x", ValueType::image(shape)); }
  void check() {
    SCOPED_TRACE("seed " + std::to_string(GetParam()));
    check_graph_node(graph, GetParam());
  }

  std::mt19937_64 engine{GetParam()};
  Graph graph;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Shuffles, testing::Range<uint64_t>(0, 25));

TEST_P(Shuffles, ToPixels) {
  const int64_t factor = between(1, 4);
  const Shape shape{between(1, 2), between(1, 3) * factor * factor, between(1, 6), between(1, 6)};
  pixel_shuffle(graph, image(shape), "shuffle", factor);
  check();
}

TEST_P(Shuffles, ToChannels) {
  const int64_t factor = between(1, 4);
  const Shape shape{between(1, 2), between(1, 3), between(1, 6) * factor, between(1, 6) * factor};
  pixel_unshuffle(graph, image(shape), "unshuffle", factor);
  check();
}

TEST_P(Shuffles, ChannelsAsTorchDoes) {
  const int64_t groups = between(1, 4);
  Shape shape{between(1, 3), groups * between(1, 4)};
  for (int64_t axis = between(1, 3); axis > 0; --axis) shape.push_back(between(1, 6));
  channel_shuffle(graph, image(shape), "shuffle", groups);
  check();
  ReferenceArgs args;
  args.inputs = {at::rand(shape, at::kDouble)};
  c10::NoGradGuard no_grad;
  EXPECT_TRUE(
      at::equal(graph.node(0).op->reference(args), at::channel_shuffle(args.inputs[0], groups)));
}

/// Placements cut no channels so far, but the kernels go by the box alone.
void check_channel_parts(const Graph& graph) {
  const Node& node = graph.node(0);
  const Shape in_shape = node.types.inputs[0].shape(), out_shape = node.types.output.shape();
  ReferenceArgs reference;
  reference.inputs = {at::rand(in_shape, at::kDouble)};
  const at::Tensor expected = node.op->reference(reference);
  const at::Tensor weights = at::rand(out_shape, at::kDouble);
  at::Tensor gradient = at::zeros(in_shape, at::kDouble);
  for (int64_t channel = 0; channel < out_shape[1]; channel += 3) {
    KernelArgs args;
    args.types = &node.types;
    args.out_box = Box::whole(out_shape);
    args.out_box[1] = {channel, std::min(channel + 3, out_shape[1])};
    const Box needed = node.op->needed(0, args.out_box, node.types);
    const Operand whole{reference.inputs[0], Box::whole(in_shape)};
    args.inputs = {{whole.view(needed), needed}};
    args.output = {at::full(args.out_box.shape(), NAN, at::kDouble), args.out_box};
    node.op->forward(args);
    const auto part = [&](const at::Tensor& tensor) {
      return tensor.narrow(1, channel, args.out_box[1].size());
    };
    EXPECT_TRUE(at::equal(args.output.tensor, part(expected)));
    args.grad_output = {part(weights), args.out_box};
    args.grad_inputs = {{at::full(needed.shape(), NAN, at::kDouble), needed}};
    node.op->input_gradient(args);
    Operand{gradient, whole.box}.view(needed).add_(args.grad_inputs[0].tensor);
  }
  EXPECT_NEAR((expected * weights).sum().item<double>(),
              (reference.inputs[0] * gradient).sum().item<double>(), 1e-10);
}

TEST(ShuffleRules, PartsOfChannels) {
  for (int kind = 0; kind < 3; ++kind) {
    SCOPED_TRACE(kind);
    Graph graph;
    const ValueId x = graph.add_input("x", ValueType::image({2, 20, 4, 6}));
    if (kind == 0) pixel_shuffle(graph, x, "shuffle", 2);
    if (kind == 1) pixel_unshuffle(graph, x, "shuffle", 2);
    if (kind == 2) channel_shuffle(graph, x, "shuffle", 5);
    check_channel_parts(graph);
  }
}

TEST(ShuffleRules, FeaturesWithoutSpace) {
  Graph graph;
  ValueType type;
  type.axes = {{AxisKind::kBatch, 5, -1, {}}, {AxisKind::kChannel, 6, -1, {}}};
  channel_shuffle(graph, graph.add_input("x", type), "shuffle", 3);
  check_graph_node(graph, 1);
}

TEST(ShuffleRules, FactorsDivideAndMultiplyStrides) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 9, 6, 12}));
  const ValueType large = graph.type(pixel_shuffle(graph, x, "large", 3));
  EXPECT_EQ(large.shape(), (Shape{1, 1, 18, 36}));
  EXPECT_EQ(large.axes[3].stride, Ratio::of(1, 3));
  const ValueType small = graph.type(pixel_unshuffle(graph, x, "small", 2));
  EXPECT_EQ(small.shape(), (Shape{1, 36, 3, 6}));
  EXPECT_EQ(small.axes[2].stride, Ratio::of(2, 1));
}

TEST(ShuffleRules, RefusesWhatDoesNotFit) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 8, 6, 9}));
  const ValueId line = graph.add_input("line", ValueType::image({1, 8, 6}));
  EXPECT_THROW(pixel_shuffle(graph, x, "shuffle", 3), InvalidInput);
  EXPECT_THROW(pixel_shuffle(graph, x, "shuffle", 0), InvalidInput);
  EXPECT_THROW(pixel_shuffle(graph, x, "shuffle", int64_t{1} << 32), InvalidInput)
      << "its square is 0 in 64 bits";
  EXPECT_THROW(pixel_shuffle(graph, line, "shuffle", 2), InvalidInput);
  EXPECT_THROW(pixel_unshuffle(graph, x, "unshuffle", 2), InvalidInput);
  EXPECT_NO_THROW(pixel_unshuffle(graph, x, "unshuffle", 3));
  EXPECT_THROW(channel_shuffle(graph, x, "channels", 3), InvalidInput);
  EXPECT_THROW(channel_shuffle(graph, x, "channels", 0), InvalidInput);
}

}  // namespace
}  // namespace tessera::pixel_shuffle_test
