// Batch normalisation, alone and fused with ReLU, on random shapes with one to three spatial axes.

#include "tessera/ops/norm/batch_norm.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tessera/geometry/split.h"
#include "tessera/kernels/norm.h"
#include "tessera/ops/norm/plane_norm_op.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::batch_norm_test {
namespace {

using Activation = BatchNormOptions::Activation;
using Source = BatchNormOptions::Statistics;

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine);
}

void check(const Shape& shape, const BatchNormOptions& options, uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}, {}", seed, to_string(shape)));
  Graph graph;
  batch_norm(graph, graph.add_input("x", ValueType::image(shape)), "bn", options);
  check_graph_node(graph, seed);
}

std::shared_ptr<const Op> make(const ValueType& type, const BatchNormOptions& options = {}) {
  Graph graph;
  batch_norm(graph, graph.add_input("x", type), "bn", options);
  return graph.node(0).op;
}

std::shared_ptr<const Op> with_relu(const Op& norm) {
  return plane_norm_op(norm)->with_tail({.activation = Activation::kRelu});
}

class RandomBatchNorm : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomBatchNorm, MatchesReference) {
  std::mt19937_64 engine(GetParam());
  Shape shape{between(engine, 1, 3), between(engine, 1, 4)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 2, 9));
  for (Source statistics : {Source::kBatch, Source::kRunning})
    for (Activation activation : {Activation::kNone, Activation::kRelu})
      check(shape,
            {.epsilon = 1e-3, .momentum = 0.3, .statistics = statistics, .activation = activation},
            GetParam());
}

TEST_P(RandomBatchNorm, WithoutParametersOrBuffers) {
  std::mt19937_64 engine(GetParam());
  Shape shape{between(engine, 1, 3), between(engine, 1, 4)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 2, 9));
  for (Activation activation : {Activation::kNone, Activation::kRelu}) {
    check(shape, {.activation = activation, .affine = false}, GetParam());
    check(shape, {.activation = activation, .running = false}, GetParam());
    check(shape, {.activation = activation, .affine = false, .running = false}, GetParam());
    check(shape, {.statistics = Source::kRunning, .activation = activation, .affine = false},
          GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomBatchNorm, testing::Range<uint64_t>(0, 12));

// ---- Statistics of micro-batches ----------------------------------------------------------------

/// As an executor runs it: pieces inside the micro-batches, each merged for itself.
TEST_P(RandomBatchNorm, MatchesReferenceByMicroBatches) {
  std::mt19937_64 engine(GetParam());
  const int64_t parts = between(engine, 2, 4);
  Shape shape{between(engine, parts, 9), between(engine, 1, 4)};
  for (int64_t axis = between(engine, 1, 3); axis > 0; --axis)
    shape.push_back(between(engine, 2, 5));
  SCOPED_TRACE(fmt::format("seed {}, {} in {} parts", GetParam(), to_string(shape), parts));
  for (Activation activation : {Activation::kNone, Activation::kRelu})
    for (bool plain : {false, true}) {
      Graph graph;
      batch_norm(graph, graph.add_input("x", ValueType::image(shape)), "bn",
                 {.epsilon = 1e-3,
                  .momentum = 0.3,
                  .activation = activation,
                  .affine = !plain,
                  .running = !plain,
                  .batch_parts = parts});
      check_graph_node(graph, GetParam(), {.micro_batches = parts});
    }
}

struct Numbers {
  explicit Numbers(const Shape& shape) {
    at::manual_seed(6);
    x = at::rand(shape, at::kDouble);
    weight = at::rand({shape[1]}, at::kDouble);
    bias = at::rand({shape[1]}, at::kDouble);
    mean = at::rand({shape[1]}, at::kDouble);
    variance = at::rand({shape[1]}, at::kDouble) + 0.5;
  }
  at::Tensor x, weight, bias, mean, variance;
};

/// Five samples in two parts: three and two, or two and three, as `split` decides.
TEST(BatchNormByParts, IsPyTorchsOnEachPart) {
  const Shape shape{5, 3, 4, 6};
  const auto op = with_batch_parts(*make(ValueType::image(shape), {.epsilon = 1e-3}), 2);
  ASSERT_NE(op, nullptr);
  const Numbers numbers(shape);
  std::vector<at::Tensor> parts;
  for (int64_t part : {0, 1}) {
    const Range samples = split(5, 2, part);
    parts.push_back(at::batch_norm(numbers.x.narrow(0, samples.begin, samples.size()),
                                   numbers.weight, numbers.bias, {}, {}, true, 0.1, 1e-3, false));
  }
  EXPECT_NE(parts[0].size(0), parts[1].size(0));
  const at::Tensor y = op->reference({nullptr,
                                      0,
                                      0,
                                      {numbers.x},
                                      {numbers.weight, numbers.bias},
                                      {numbers.mean.clone(), numbers.variance.clone()}});
  EXPECT_TRUE(at::allclose(y, at::cat(parts), 1e-13, 1e-13));
  const at::Tensor whole =
      at::batch_norm(numbers.x, numbers.weight, numbers.bias, {}, {}, true, 0.1, 1e-3, false);
  EXPECT_FALSE(at::allclose(y, whole, 1e-3, 1e-3)) << "the parts do not differ";
}

TEST(BatchNormByParts, TracksTheWholeBatchOnce) {
  const Shape shape{5, 3, 4, 6};
  const auto op = with_batch_parts(*make(ValueType::image(shape), {.momentum = 0.3}), 2);
  const Numbers numbers(shape);
  const at::Tensor mean = numbers.mean.clone(), variance = numbers.variance.clone();
  op->reference({nullptr, 0, 0, {numbers.x}, {numbers.weight, numbers.bias}, {mean, variance}});
  const at::Tensor batch_mean = numbers.x.mean({0, 2, 3});
  const at::Tensor batch_variance = numbers.x.var({0, 2, 3}, /*unbiased=*/true);
  EXPECT_TRUE(at::allclose(mean, 0.7 * numbers.mean + 0.3 * batch_mean, 1e-13, 1e-13));
  EXPECT_TRUE(at::allclose(variance, 0.7 * numbers.variance + 0.3 * batch_variance, 1e-13, 1e-13));
}

TEST(BatchNormByParts, SaysHowManyPartsThereAre) {
  const auto plain = make(ValueType::image({4, 2, 4}), {.affine = false});
  EXPECT_EQ(plain->batch_parts(), 1);
  const auto apart = with_batch_parts(*plain, 4);
  EXPECT_EQ(apart->batch_parts(), 4);
  EXPECT_EQ(apart->settings(), "4 micro-batches, no affine");
  EXPECT_EQ(with_batch_parts(*apart, 1)->batch_parts(), 1);
  EXPECT_EQ(with_relu(*apart)->batch_parts(), 4);  // fusing forgets nothing
  // With running statistics there is nothing to split, and neither is there in other operators.
  const auto running = with_running_statistics(*apart);
  EXPECT_EQ(running->batch_parts(), 0);
  EXPECT_EQ(with_batch_parts(*running, 2), nullptr);
}

TEST(BatchNormByParts, SaysNothingOfPartsWhereItUsesRunningStatistics) {
  const auto apart = make(ValueType::image({4, 2, 4}), {.batch_parts = 4});
  EXPECT_EQ(with_running_statistics(*apart)->settings(), "running statistics");
}

TEST(BatchNormByParts, RefusesAPartOfOneValuePerChannel) {
  const auto with_parts = [](const Shape& shape, int64_t parts) {
    return make(ValueType::image(shape), {.batch_parts = parts});
  };
  EXPECT_NO_THROW(with_parts({4, 3, 1, 1}, 2));
  EXPECT_NO_THROW(with_parts({3, 3, 1, 2}, 3));
  EXPECT_THROW(with_parts({3, 3, 1, 2}, 4), InvalidInput);  // a part of nothing
  for (int64_t parts : {2, 3}) {
    try {
      with_parts({3, 3, 1, 1}, parts);
      ADD_FAILURE() << parts;
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find(fmt::format("in one of {} micro-batches", parts)),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(BatchNorm, CrossesBlocks) {
  check({2, 3, 5000}, {.activation = Activation::kRelu}, 1);
  check({1, 2, 90, 70}, {}, 2);
  check({1, 2, 9, 30, 31}, {.activation = Activation::kRelu}, 3);
}

TEST(BatchNorm, NormalisesVectors) {
  const ValueType vectors{{{AxisKind::kBatch, 6, -1, {}}, {AxisKind::kChannel, 5, -1, {}}}};
  Graph graph;
  batch_norm(graph, graph.add_input("x", vectors), "bn");
  check_graph_node(graph, 4);
}

TEST(BatchNorm, KeepsVarianceBesideLargeMean) {
  const ValueType type = ValueType::image({2, 3, 40, 60});
  at::manual_seed(5);
  const at::Tensor x = at::rand(type.shape(), at::kDouble) + 1e4;
  const at::Tensor ones = at::ones({3}, at::kDouble), zeros = at::zeros({3}, at::kDouble);
  // In float32 the numbers themselves have lost their digits.
  check_op(*make(type), {type}, {x}, {ones, zeros}, {zeros, ones}, 5, {.float32_tolerance = 1});
}

TEST(BatchNorm, StatisticsDoNotDependOnThreads) {
  const at::Tensor x = at::rand({2, 3, 200, 130});
  const int threads = at::get_num_threads();
  const at::Tensor one = at::empty({1, 3, kNumbersPerCell}, at::kDouble);
  const at::Tensor many = at::empty_like(one);
  at::set_num_threads(1);
  plane_moments(x, one);
  at::set_num_threads(4);
  plane_moments(x, many);
  at::set_num_threads(threads);
  EXPECT_TRUE(one.equal(many));
}

/// Pieces of very different sizes, far from zero and from each other.
TEST(BatchNorm, CombinesMomentsOfAnyCounts) {
  const std::vector<int64_t> sizes{1, 300, 2, 1, 47};
  at::manual_seed(8);
  std::vector<at::Tensor> pieces, rows;
  for (size_t i = 0; i < sizes.size(); ++i) {
    pieces.push_back(at::rand({1, 2, sizes[i]}, at::kDouble) + 1e4 * static_cast<double>(i));
    rows.push_back(at::empty({2 * kNumbersPerCell}, at::kDouble));
    plane_moments(pieces.back(), cells_of_row(rows.back()).unsqueeze(0));
  }
  const at::Tensor middle = at::empty_like(rows[0]), combined = at::empty_like(rows[0]);
  combine_moments({rows[1], rows[2], rows[3]}, middle);
  combine_moments({rows[0], middle, rows[4]}, combined);
  const at::Tensor whole = at::cat(pieces, 2);
  const at::Tensor cells = cells_of_row(combined);
  const auto moments = cells.accessor<double, 2>();
  for (int64_t c = 0; c < 2; ++c) {
    EXPECT_EQ(moments[c][0], 351);
    EXPECT_NEAR(moments[c][1], whole[0][c].mean().item<double>(), 1e-9);
    const double m2 = whole[0][c].var(/*unbiased=*/false).item<double>() * 351;
    EXPECT_NEAR(moments[c][2] / m2, 1, 1e-12);
  }
}

TEST(BatchNorm, RowsOfNothingAreNothing) {
  const at::Tensor row =
      at::tensor({3.0, 0.1, 0.7, 0.0, 0.0, 0.0, 1.0, 1e200, 0.0, 2.0, -0.0, 0.3}, at::kDouble);
  const at::Tensor zeros = at::zeros_like(row), combined = at::empty_like(row);
  combine_moments({zeros, row, zeros}, combined);
  EXPECT_TRUE(at::equal(combined.view(at::kLong), row.view(at::kLong))) << combined;
  combine_moments({zeros, zeros}, combined);
  EXPECT_TRUE(at::equal(combined, zeros));
}

TEST(BatchNorm, EmptyPieceAddsNothing) {
  const ValueType type = ValueType::image({1, 1, 4});
  const NodeTypes types{{type}, type};
  const auto op = make(type);
  const Box empty{{0, 1}, {0, 1}, {4, 4}};
  KernelArgs piece;
  piece.types = &types;
  piece.out_box = empty;
  piece.inputs = {{at::empty({1, 1, 0}, at::kDouble), empty}};
  piece.piece_statistics = at::full({3}, 7, at::kDouble);
  op->piece_statistics(piece);
  EXPECT_EQ(piece.piece_statistics.abs().sum().item<double>(), 0);
}

/// Two micro-batches of 3 and 1 elements: 1, 2, 3 and 6.
TEST(BatchNorm, MergesARowAndUpdatesFromAllRows) {
  const ValueType type = ValueType::image({1, 1, 4});
  const NodeTypes types{{type}, type};
  const auto op = make(type);
  const at::Tensor first = at::tensor({3.0, 2.0, 2.0}, at::kDouble);
  const at::Tensor second = at::tensor({1.0, 6.0, 0.0}, at::kDouble);
  MergeArgs merge{&types, first, at::empty({2}, at::kDouble)};
  op->merge_statistics(merge);
  EXPECT_DOUBLE_EQ(merge.merged[0].item<double>(), 2);
  EXPECT_DOUBLE_EQ(merge.merged[1].item<double>(), 1 / std::sqrt(2.0 / 3 + 1e-5));
  UpdateArgs update{
      &types, {first, second}, {at::zeros({1}, at::kDouble), at::zeros({1}, at::kDouble)}};
  op->update_buffers(update);
  EXPECT_DOUBLE_EQ(update.buffers[0].item<double>(), 0.1 * 3);
  EXPECT_DOUBLE_EQ(update.buffers[1].item<double>(), 0.1 * 14 / 3);
}

/// Where a piece holds some of the channels, the others have no elements.
TEST(BatchNorm, PieceOfSomeChannels) {
  const ValueType type = ValueType::image({1, 3, 2});
  const NodeTypes types{{type}, type};
  KernelArgs piece;
  piece.types = &types;
  piece.out_box = {{0, 1}, {1, 2}, {0, 2}};
  piece.inputs = {{at::tensor({4.0, 6.0}, at::kDouble).view({1, 1, 2}), piece.out_box}};
  piece.piece_statistics = at::full({9}, 7, at::kDouble);
  make(type)->piece_statistics(piece);
  EXPECT_TRUE(at::equal(piece.piece_statistics,
                        at::tensor({0.0, 0.0, 0.0, 2.0, 5.0, 2.0, 0.0, 0.0, 0.0}, at::kDouble)));
}

TEST(BatchNorm, WeightGradientIsThePiecesOwn) {
  const ValueType type = ValueType::image({1, 2, 4});
  const NodeTypes types{{type}, type};
  KernelArgs args;
  args.types = &types;
  args.out_box = Box::whole(type.shape());
  args.piece_grad_statistics = at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble);
  args.merged_grad_statistics = at::full({4}, 100, at::kDouble);
  args.grad_parameters = {at::ones({2}), at::ones({2})};
  make(type)->weight_gradient(args);
  EXPECT_TRUE(at::equal(args.grad_parameters[0], at::tensor({4.0F, 5.0F})));
  EXPECT_TRUE(at::equal(args.grad_parameters[1], at::tensor({2.0F, 3.0F})));
}

TEST(BatchNorm, UsesRunningStatisticsWhereItTracksThem) {
  const ValueType type = ValueType::image({1, 2, 4});
  const auto running = with_running_statistics(*make(type, {.affine = false}));
  ASSERT_NE(running, nullptr);
  EXPECT_EQ(running->settings(), "running statistics, no affine");
  EXPECT_EQ(running->forward_statistics({{type}, type}).per_piece, 0);
  EXPECT_EQ(with_running_statistics(*with_relu(*make(type)))->kind(), "batch_norm_relu");
  EXPECT_EQ(with_running_statistics(*make(type, {.running = false})), nullptr);
  EXPECT_THROW(make(type, {.statistics = Source::kRunning, .running = false}), InvalidInput);
}

TEST(BatchNorm, HasOnlyWhatItUses) {
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({1, 2, 4}));
  batch_norm(graph, x, "plain", {.affine = false, .running = false});
  EXPECT_TRUE(graph.parameters().empty());
  batch_norm(graph, x, "tracked", {.affine = false});
  EXPECT_TRUE(graph.node(1).parameters.empty());
  EXPECT_EQ(graph.node(1).buffers.size(), 2U);
}

TEST(BatchNorm, NamesParametersAsPyTorch) {
  Graph graph;
  batch_norm(graph, graph.add_input("x", ValueType::image({1, 2, 4})), "layer.bn");
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"layer.bn.weight", "layer.bn.bias",
                                             "layer.bn.running_mean", "layer.bn.running_var"}));
}

TEST(BatchNorm, RefusesOneValuePerChannel) {
  EXPECT_THROW(make(ValueType::image({1, 3, 1, 1})), InvalidInput);
  EXPECT_NO_THROW(make(ValueType::image({2, 3, 1, 1})));
  EXPECT_NO_THROW(make(ValueType::image({1, 3, 1, 1}), {.statistics = Source::kRunning}));
}

}  // namespace
}  // namespace tessera::batch_norm_test
