// Kernels ask for the bytes that they take: how many, and where none. That they take no more and
// rely on no byte's value is the harness's to see.

#include "tessera/kernels/scratch.h"

#include <gtest/gtest.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/norm/layer_norm.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pool/amax.h"
#include "tessera/ops/pool/partial.h"

namespace tessera::scratch_test {
namespace {

ValueId image(Graph& graph, const Shape& shape) {
  return graph.add_input("x", ValueType::image(shape));
}

int64_t asked(const Graph& graph, Phase phase, const Box& out,
              at::ScalarType real = at::ScalarType::Float) {
  const Node& node = graph.nodes().back();
  const ScratchBytes bytes = node.op->scratch_bytes(phase, out, node.types, real);
  EXPECT_EQ(bytes.least, bytes.most);
  return bytes.least;
}

TEST(Scratch, GivesTensorsOneAfterTheOther) {
  const int64_t bytes = Scratch::bytes_of(3, at::kBool) + Scratch::bytes_of(10, at::kDouble);
  EXPECT_EQ(bytes, 64 + 128);
  const at::Tensor memory = at::zeros({bytes}, at::kByte);
  Scratch scratch(memory);
  const at::Tensor flags = scratch.take({3}, at::kBool).fill_(true);
  const at::Tensor numbers = scratch.take({2, 5}, at::kDouble).fill_(-1);
  EXPECT_EQ(flags.sum().item<int64_t>(), 3);
  EXPECT_EQ(numbers.sum().item<double>(), -10);
  EXPECT_EQ(numbers.data_ptr(), memory.data_ptr<uint8_t>() + 64);
  EXPECT_THROW(scratch.take({1}, at::kBool), InternalError);
  EXPECT_THROW(Scratch({}).take({1}, at::kBool), InternalError);
}

TEST(Scratch, CopiesOnlyWhatIsNotContiguous) {
  const at::Tensor tensor = at::arange(20, at::kFloat).view({4, 5});
  EXPECT_TRUE(Scratch({}).contiguous(tensor).is_same(tensor));
  const at::Tensor memory = at::empty({Scratch::bytes_of(20, at::kFloat)}, at::kByte);
  const at::Tensor copy = Scratch(memory).contiguous(tensor.t());
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_TRUE(at::equal(copy, tensor.t()));
  EXPECT_EQ(copy.data_ptr(), memory.data_ptr());
}

ScratchBytes asked_by_convolution(int64_t groups, std::vector<int64_t> kernel) {
  Graph graph;
  const ValueId x = image(graph, {1, 64, 32, 32});
  convolution(graph, x, "conv",
              {.out_channels = 128, .kernel = std::move(kernel), .groups = groups});
  const Node& node = graph.nodes().back();
  return node.op->scratch_bytes(Phase::kForward, {}, node.types, at::kFloat);
}

/// The weight, packed for the kernel, as a whole or in parts; Winograd's points are 36 for 9 taps.
TEST(Scratch, ConvolutionPacksItsWeight) {
  const ScratchBytes whole = asked_by_convolution(1, {5, 5});
  EXPECT_EQ(whole.most, 128 * 64 * 25 * 4);
  EXPECT_LT(whole.least, whole.most);
  EXPECT_EQ(asked_by_convolution(1, {3, 3}).most, 128 * 64 * 36 * 4);
  EXPECT_EQ(asked_by_convolution(4, {5, 5}).most, 32 * 16 * 25 * 4) << "one group at a time";
  EXPECT_EQ(asked_by_convolution(64, {5, 5}).most, 0) << "the library's";
}

TEST(Scratch, IsWhatIsAskedForWithinALimit) {
  const ScratchBytes bytes{10, 20};
  EXPECT_EQ(bytes.within(5), 10);
  EXPECT_EQ(bytes.within(15), 15);
  EXPECT_EQ(bytes.within(25), 20);
}

TEST(Scratch, PartialLinearHasOnePartAtATime) {
  const PartialLinear op({{{0, 2}}, {{2, 6}}}, {6}, 16);
  const std::vector<ValueType> inputs{ValueType::image({2, 8, 6})};
  const NodeTypes types{inputs, op.infer_type(inputs)};
  EXPECT_EQ(op.scratch_bytes(Phase::kForward, {{0, 2}, {0, 16}, {0, 2}}, types, at::kFloat).most,
            (2 * 8 * 4 + 16 * 8 * 4) * 4);
}

TEST(Scratch, ArithmeticOfEqualShapesNeedsNone) {
  Graph graph;
  const ValueId x = image(graph, {1, 4, 16});
  const Box all{{0, 1}, {0, 4}, {0, 16}};
  arithmetic(graph, x, x, "mul", Arithmetic::kMultiply);
  EXPECT_EQ(asked(graph, Phase::kInputGradient, all), 0);
  arithmetic(graph, x, x, "max", Arithmetic::kMaximum);  // who loses
  EXPECT_EQ(asked(graph, Phase::kInputGradient, all), 64);
  arithmetic(graph, x, image(graph, {1, 4, 1}), "scale", Arithmetic::kMultiply);
  EXPECT_EQ(asked(graph, Phase::kInputGradient, all), 64 * 4);
  arithmetic(graph, x, image(graph, {1, 4, 1}), "shift", Arithmetic::kAdd);
  EXPECT_EQ(asked(graph, Phase::kInputGradient, all), 0);
}

TEST(Scratch, AmaxMarksTheLargest) {
  Graph graph;
  amax(graph, image(graph, {1, 4, 16}), "amax", {.axes = {1}});
  EXPECT_EQ(asked(graph, Phase::kInputGradient, {{0, 1}, {0, 1}, {0, 16}}), 64 + 16 * 8 + 16 * 4);
}

TEST(Scratch, LayerNormOverTheSampleWeighsItsGradient) {
  Graph graph;
  const ValueId x = image(graph, {2, 4, 16});
  const Box half{{0, 2}, {0, 4}, {0, 8}};
  layer_norm(graph, x, "ln", {.over = LayerNormOptions::Over::kSample});
  EXPECT_EQ(asked(graph, Phase::kForward, half), 0);
  for (Phase phase : {Phase::kPieceGradStatistics, Phase::kInputGradient, Phase::kWeightGradient})
    EXPECT_EQ(asked(graph, phase, half), 64 * 4) << to_string(phase);
  layer_norm(graph, x, "plain", {.over = LayerNormOptions::Over::kSample, .affine = false});
  EXPECT_EQ(asked(graph, Phase::kInputGradient, half), 0);
}

}  // namespace
}  // namespace tessera::scratch_test
