// Group normalisation on random shapes with one to three spatial axes, and without space.

#include "tessera/ops/norm/group_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::group_norm_test {
namespace {

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine);
}

ValueType vectors(int64_t batch, int64_t channels) {
  return {{{AxisKind::kBatch, batch, -1, {}}, {AxisKind::kChannel, channels, -1, {}}}};
}

void check(const ValueType& type, const GroupNormOptions& options, uint64_t seed,
           const HarnessOptions& harness = {}) {
  SCOPED_TRACE(fmt::format("seed {}, {}, {} groups", seed, to_string(type), options.groups));
  Graph graph;
  group_norm(graph, graph.add_input("x", type), "gn", options);
  check_graph_node(graph, seed, harness);
}

std::shared_ptr<const Op> make(const ValueType& type, const GroupNormOptions& options) {
  Graph graph;
  group_norm(graph, graph.add_input("x", type), "gn", options);
  return graph.node(0).op;
}

class RandomGroupNorm : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomGroupNorm, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  const int64_t groups = between(engine, 1, 4);
  Shape shape{between(engine, 1, 4), groups * between(engine, 1, 3)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 2, 9));
  for (bool affine : {true, false})
    check(ValueType::image(shape), {.groups = groups, .epsilon = 1e-3, .affine = affine},
          GetParam());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGroupNorm, testing::Range<uint64_t>(0, 20));

TEST(GroupNorm, CrossesBlocks) {
  check(ValueType::image({2, 6, 5000}), {.groups = 3}, 1);
  check(ValueType::image({3, 4, 90, 70}), {.groups = 2}, 2);
  check(ValueType::image({1, 2, 9, 30, 31}), {.groups = 1, .affine = false}, 3);
}

TEST(GroupNorm, NormalisesVectors) {
  check(vectors(6, 12), {.groups = 3}, 4);
  check(vectors(5, 8), {.groups = 1, .affine = false}, 5);
}

TEST(GroupNorm, NormalisesSinglePixels) { check(ValueType::image({3, 8, 1, 1}), {.groups = 2}, 6); }

TEST(GroupNorm, ManyPieces) {
  check(ValueType::image({7, 4, 13, 11}), {.groups = 2}, 7, {.max_parts_per_axis = 6});
}

TEST(GroupNorm, KeepsVarianceBesideLargeMean) {
  const ValueType type = ValueType::image({2, 4, 40, 60});
  at::manual_seed(5);
  const at::Tensor x = at::rand(type.shape(), at::kDouble) + 1e3;
  const at::Tensor ones = at::ones({4}, at::kDouble), zeros = at::zeros({4}, at::kDouble);
  // In float32 the numbers themselves have lost their digits.
  check_op(*make(type, {.groups = 2}), {type}, {x}, {ones, zeros}, {}, 5, {.float32_tolerance = 1});
}

/// Pieces may hold a part of a group's channels; then its moments are those of several pieces.
/// Pieces have whole groups: nothing cuts channels elsewhere.
TEST(GroupNorm, MergesChannelsOfOneGroup) {
  const ValueType type = ValueType::image({2, 4, 3});
  const NodeTypes types{{type}, type};
  const auto op = make(type, {.groups = 2, .epsilon = 0});
  const at::Tensor x = at::arange(24, at::kDouble).square().view({2, 4, 3});
  const std::vector<Box> boxes{{{0, 2}, {0, 2}, {0, 1}},
                               {{0, 2}, {0, 4}, {1, 2}},
                               {{0, 1}, {3, 3}, {0, 3}},
                               {{0, 1}, {2, 4}, {0, 1}},
                               {{1, 2}, {2, 4}, {0, 1}},
                               {{0, 2}, {0, 4}, {2, 3}}};
  std::vector<at::Tensor> rows;
  for (const Box& box : boxes) {
    rows.push_back(at::empty({12}, at::kDouble));
    KernelArgs args;
    args.types = &types;
    args.out_box = box;
    args.inputs = {{x, Box::whole(type.shape())}};
    args.piece_statistics = rows.back();
    op->piece_statistics(args);
  }
  MergeArgs merge{&types, at::empty({12}, at::kDouble), at::empty({8}, at::kDouble)};
  op->combine_statistics(rows, merge.row);
  op->merge_statistics(merge);
  const at::Tensor groups = x.view({4, 6});
  EXPECT_TRUE(at::allclose(merge.merged.narrow(0, 0, 4), groups.mean(1)));
  EXPECT_TRUE(at::allclose(merge.merged.narrow(0, 4, 4), 1 / groups.std(1, /*unbiased=*/false)));
}

/// The sums of a piece come with those of its statistics; they are not taken again.
TEST(GroupNorm, WeightGradientIsThePiecesOwn) {
  const ValueType type = ValueType::image({1, 2, 4});
  const NodeTypes types{{type}, type};
  const auto op = make(type, {.groups = 1});
  EXPECT_EQ(op->backward_statistics(types), 6);
  KernelArgs args;
  args.types = &types;
  args.out_box = Box::whole(type.shape());
  args.piece_grad_statistics = at::tensor({50.0, 60.0, 1.0, 2.0, 3.0, 4.0}, at::kDouble);
  args.merged_grad_statistics = at::full({6}, 100, at::kDouble);
  args.grad_parameters = {at::ones({2}), at::ones({2})};
  op->weight_gradient(args);
  EXPECT_TRUE(at::equal(args.grad_parameters[0], at::tensor({4.0F, 5.0F})));
  EXPECT_TRUE(at::equal(args.grad_parameters[1], at::tensor({2.0F, 3.0F})));
}

TEST(GroupNorm, EmptyPieceAddsNothing) {
  const ValueType type = ValueType::image({2, 2, 4});
  const NodeTypes types{{type}, type};
  const auto op = make(type, {.groups = 1});
  KernelArgs args;
  args.types = &types;
  args.out_box = {{0, 2}, {0, 2}, {4, 4}};
  args.inputs = {{at::empty({2, 2, 0}, at::kDouble), args.out_box}};
  args.grad_output = args.inputs[0];
  args.grad_inputs = {{at::empty({2, 2, 0}, at::kDouble), args.out_box}};
  args.output = args.grad_inputs[0];
  args.piece_statistics = at::full({6}, 7, at::kDouble);
  args.piece_grad_statistics = at::full({8}, 7, at::kDouble);
  op->piece_statistics(args);
  op->forward(args);
  op->piece_grad_statistics(args);
  op->input_gradient(args);
  EXPECT_EQ(args.piece_statistics.abs().sum().item<double>(), 0);
  EXPECT_EQ(args.piece_grad_statistics.abs().sum().item<double>(), 0);
}

TEST(GroupNorm, NamesParametersAsPyTorch) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 4, 4}));
  group_norm(graph, x, "layer.gn", {.groups = 2});
  ASSERT_EQ(graph.parameters().size(), 2U);
  EXPECT_EQ(graph.parameters()[0].name, "layer.gn.weight");
  EXPECT_EQ(graph.parameters()[1].name, "layer.gn.bias");
  EXPECT_EQ(graph.parameters()[0].shape, (Shape{4}));
  group_norm(graph, x, "plain", {.groups = 4, .affine = false});
  EXPECT_EQ(graph.parameters().size(), 2U);
  EXPECT_EQ(graph.node(0).op->settings(), "groups 2");
  EXPECT_EQ(graph.node(1).op->settings(), "groups 4, no affine");
}

TEST(GroupNorm, RefusesWhatDoesNotFit) {
  const ValueType image = ValueType::image({2, 6, 4, 4});
  for (int64_t groups : {-1, 0, 4, 12})
    EXPECT_THROW(make(image, {.groups = groups}), InvalidInput) << groups;
  EXPECT_THROW(make(image, {.epsilon = -1}), InvalidInput);
  EXPECT_THROW(make(ValueType::image({2, 6, 1, 1}), {.groups = 6}), InvalidInput);
  EXPECT_NO_THROW(make(ValueType::image({2, 6, 1, 1}), {.groups = 3}));
  ValueType labels = image;
  labels.element = Element::kIndex;
  EXPECT_THROW(make(labels, {}), InvalidInput);
  EXPECT_THROW(make({{{AxisKind::kBatch, 3, -1, {}}}}, {}), InvalidInput);
}

}  // namespace
}  // namespace tessera::group_norm_test
