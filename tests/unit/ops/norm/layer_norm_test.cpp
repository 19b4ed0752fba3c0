// Layer normalisation over channels and over the sample, on random shapes and on vectors.

#include "tessera/ops/norm/layer_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tessera/kernels/layer_norm.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::layer_norm_test {
namespace {

using Over = LayerNormOptions::Over;

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine);
}

ValueType vectors(int64_t batch, int64_t channels) {
  return {{{AxisKind::kBatch, batch, -1, {}}, {AxisKind::kChannel, channels, -1, {}}}};
}

Graph make(const ValueType& type, const LayerNormOptions& options) {
  Graph graph;
  layer_norm(graph, graph.add_input("x", type), "ln", options);
  return graph;
}

void check(const ValueType& type, const LayerNormOptions& options, uint64_t seed) {
  const Graph graph = make(type, options);
  SCOPED_TRACE(fmt::format("seed {}, {}, {}", seed, to_string(type), graph.node(0).op->settings()));
  check_graph_node(graph, seed);
}

class RandomLayerNorm : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomLayerNorm, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  Shape shape{between(engine, 1, 4), between(engine, 2, 9)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 1, 9));
  for (Over over : {Over::kChannels, Over::kSample})
    for (bool affine : {true, false})
      check(ValueType::image(shape), {.over = over, .epsilon = 1e-2, .affine = affine}, GetParam());
}

TEST_P(RandomLayerNorm, MatchesReferenceOnVectors) {
  std::mt19937_64 engine(GetParam());
  const ValueType type = vectors(between(engine, 1, 9), between(engine, 3, 40));
  for (Over over : {Over::kChannels, Over::kSample})
    check(type, {.over = over, .epsilon = 1e-2, .affine = between(engine, 0, 3) > 0}, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLayerNorm, testing::Range<uint64_t>(0, 20));

TEST(LayerNorm, CrossesTiles) {
  check(ValueType::image({2, 5, 300}), {}, 1);
  check(ValueType::image({1, 7, 20, 150}), {}, 2);
  check(ValueType::image({1, 3, 9, 30, 31}), {.affine = false}, 3);
  check(vectors(150, 6), {}, 4);
}

TEST(LayerNorm, OverSampleCrossesBlocks) {
  check(ValueType::image({2, 3, 5000}), {.over = Over::kSample}, 5);
  check(ValueType::image({3, 2, 9, 30, 31}), {.over = Over::kSample, .affine = false}, 6);
}

TEST(LayerNorm, ManyChannels) { check(ValueType::image({2, 700, 3, 5}), {.epsilon = 1e-6}, 7); }

TEST(LayerNorm, KeepsVarianceBesideLargeMean) {
  const ValueType type = ValueType::image({2, 16, 7, 9});
  at::manual_seed(5);
  const at::Tensor x = at::rand(type.shape(), at::kDouble) + 1e3;
  const at::Tensor weight = at::rand({16}, at::kDouble), bias = at::rand({16}, at::kDouble);
  // In float32 the numbers themselves have lost their digits.
  check_op(*make(type, {}).node(0).op, {type}, {x}, {weight, bias}, {}, 5,
           {.float32_tolerance = 1});
}

TEST(LayerNorm, OverChannelsExchangesNothing) {
  const ValueType type = ValueType::image({2, 3, 5, 5});
  const NodeTypes types{{type}, type};
  const auto local = make(type, {}).node(0).op;
  EXPECT_EQ(local->forward_statistics(types).per_piece, 0);
  EXPECT_EQ(local->backward_statistics(types), 0);
  const auto global = make(type, {.over = Over::kSample}).node(0).op;
  EXPECT_EQ(global->forward_statistics(types).per_piece, 6);
  EXPECT_EQ(global->backward_statistics(types), 4);
  const NodeTypes flat{{vectors(2, 3)}, vectors(2, 3)};
  const auto features = make(flat.output, {.over = Over::kSample}).node(0).op;
  EXPECT_EQ(features->forward_statistics(flat).per_piece, 0);
}

TEST(LayerNorm, WeightGradientsDoNotDependOnThreads) {
  const at::Tensor x = at::rand({2, 8, 120, 90}), gradient = at::rand({2, 8, 120, 90});
  const PixelNorm norm{1e-5, at::ones({8}), at::zeros({8})};
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = pixel_weight_gradients(x, gradient, norm);
  at::set_num_threads(4);
  const at::Tensor many = pixel_weight_gradients(x, gradient, norm);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(many));
}

TEST(LayerNorm, EmptyPieceAddsNothing) {
  for (Over over : {Over::kChannels, Over::kSample}) {
    const ValueType type = ValueType::image({2, 2, 4});
    const NodeTypes types{{type}, type};
    const auto op = make(type, {.over = over}).node(0).op;
    KernelArgs args;
    args.types = &types;
    args.out_box = {{0, 2}, {0, 2}, {4, 4}};
    args.inputs = {{at::empty({2, 2, 0}, at::kDouble), args.out_box}};
    args.grad_output = args.output = args.inputs[0];
    args.grad_inputs = {{at::empty({2, 2, 0}, at::kDouble), args.out_box}};
    args.grad_parameters = {at::ones({2, 4}), at::ones({2, 4})};
    op->forward(args);
    op->input_gradient(args);
    op->weight_gradient(args);
    for (const at::Tensor& gradient : args.grad_parameters)
      EXPECT_TRUE(at::equal(gradient, at::ones({2, 4})));
  }
}

TEST(LayerNorm, ShapesParametersAsPyTorch) {
  const auto shape = [](const ValueType& type, Over over) {
    const Graph graph = make(type, {.over = over});
    EXPECT_EQ(graph.parameters()[0].name, "ln.weight");
    EXPECT_EQ(graph.parameters()[1].name, "ln.bias");
    EXPECT_EQ(graph.parameters()[0].shape, graph.parameters()[1].shape);
    return graph.parameters()[0].shape;
  };
  EXPECT_EQ(shape(ValueType::image({2, 3, 5, 6}), Over::kChannels), (Shape{3}));
  EXPECT_EQ(shape(ValueType::image({2, 3, 5, 6}), Over::kSample), (Shape{3, 5, 6}));
  EXPECT_EQ(shape(vectors(2, 3), Over::kSample), (Shape{3}));
  EXPECT_TRUE(make(vectors(2, 3), {.affine = false}).parameters().empty());
}

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(make(ValueType::image({2, 1, 4}), {}), InvalidInput);
  EXPECT_NO_THROW(make(ValueType::image({2, 1, 4}), {.over = Over::kSample}));
  EXPECT_THROW(make(ValueType::image({2, 1, 1, 1}), {.over = Over::kSample}), InvalidInput);
  EXPECT_THROW(make(ValueType::image({2, 3, 4}), {.epsilon = std::nan("")}), InvalidInput);
  ValueType labels = ValueType::image({2, 3, 4});
  labels.element = Element::kIndex;
  for (Over over : {Over::kChannels, Over::kSample}) {
    EXPECT_THROW(make(labels, {.over = over}), InvalidInput);
    EXPECT_THROW(make({{{AxisKind::kBatch, 3, -1, {}}}}, {.over = over}), InvalidInput);
  }
}

}  // namespace
}  // namespace tessera::layer_norm_test
