// Cross entropy in every combination of class weights, ignored labels and label smoothing.

#include <gtest/gtest.h>

#include <random>

#include "tessera/base/error.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tests/unit/ops/op_harness.h"

namespace tessera::cross_entropy_test {
namespace {

int64_t between(std::mt19937_64& engine, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(engine);
}

ValueType logits_type(const Shape& shape) {
  if (shape.size() > 2) return ValueType::image(shape);
  ValueType type;
  type.axes = {{AxisKind::kBatch, shape[0], -1, {}}, {AxisKind::kChannel, shape[1], -1, {}}};
  return type;
}

/// Logits and target of a loss node, and tensors for them.
struct LossCase {
  LossCase(const Shape& shape, const CrossEntropyOptions& options) {
    at::manual_seed(7);
    const ValueId x = graph.add_input("logits", logits_type(shape));
    const ValueId t = add_target(graph, x, "labels");
    cross_entropy(graph, x, t, "loss", options);
    logits = at::randn(shape, at::kDouble) * 3;
    target = at::randint(shape[1], graph.type(t).shape(), at::kLong);
  }
  const Node& node() const { return graph.node(0); }
  void check(uint64_t seed) const {
    check_op(*node().op, node().types.inputs, {logits, target}, {}, {}, seed);
  }

  Graph graph;
  at::Tensor logits;
  at::Tensor target;
};

class CrossEntropySeeds : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, CrossEntropySeeds, testing::Range<uint64_t>(0, 40));

TEST_P(CrossEntropySeeds, MatchesPyTorch) {
  const uint64_t seed = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 engine(seed);
  Shape shape{between(engine, 1, 4), between(engine, 1, 6)};
  for (uint64_t axis = 0; axis < seed % 4; ++axis) shape.push_back(between(engine, 1, 9));
  CrossEntropyOptions options;
  if (seed & 4)
    for (int64_t k = 0; k < shape[1]; ++k)
      options.class_weights.push_back(0.25 * static_cast<double>(between(engine, 1, 9)));
  if (seed & 8) options.ignore_index = seed & 1 ? 255 : 0;
  if (seed & 16) options.label_smoothing = 0.1;
  LossCase loss(shape, options);
  if (options.ignore_index == 255)
    loss.target.masked_fill_(at::rand(loss.target.sizes()) < 0.3, 255);
  loss.check(seed);
}

TEST(CrossEntropy, RowsLongerThanATile) {
  LossCase loss({2, 3, 2, 300}, {.class_weights = {0.5, 1, 2}});
  for (uint64_t seed = 1; seed <= 6; ++seed) loss.check(seed);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  LossCase loss({2, 3, 5, 4}, {});
  loss.logits.mul_(1000);
  loss.check(1);
}

TEST(CrossEntropy, AllIgnoredIsNan) {
  LossCase loss({2, 3, 5}, {});
  loss.target.fill_(-100);
  loss.check(1);  // NaN loss, zero gradients, as PyTorch
}

TEST(CrossEntropy, ZeroWeightsAreNan) {
  LossCase loss({2, 3, 5}, {.class_weights = {0, 0, 0}});
  loss.check(1);
}

TEST(CrossEntropy, WrongLabelIsNamed) {
  LossCase loss({2, 3, 5}, {.ignore_index = 255});
  for (int64_t label : {3, -1, -100}) {
    loss.target.zero_()[1][2] = label;
    const Node& node = loss.node();
    KernelArgs args;
    args.name = &node.name;
    args.types = &node.types;
    args.out_box = Box::whole({2, 5});
    args.inputs = {{}, {loss.target, args.out_box}};
    args.piece_statistics = at::zeros({1}, at::kDouble);
    try {
      node.op->piece_statistics(args);
      ADD_FAILURE() << "label " << label << " was accepted";
    } catch (const InvalidInput& error) {
      EXPECT_EQ(error.what(), fmt::format("[cross_entropy loss] label {} is not in [0, 3) and is "
                                          "not the ignored label 255",
                                          label));
    }
  }
}

TEST(CrossEntropy, GeometryOfALoss) {
  LossCase loss({2, 3, 8, 9}, {});
  const Node& node = loss.node();
  EXPECT_TRUE(node.op->is_loss());
  EXPECT_EQ(node.types.output.shape(), (Shape{2, 8, 9}));
  EXPECT_EQ(node.types.output.element, Element::kReal);
  const Box piece{{1, 2}, {0, 4}, {3, 9}};
  EXPECT_EQ(node.op->needed(0, piece, node.types), (Box{{1, 2}, {0, 3}, {0, 4}, {3, 9}}));
  EXPECT_EQ(node.op->needed(1, piece, node.types), piece);
}

TEST(CrossEntropy, WrongInputsAreRefused) {
  EXPECT_THROW(LossCase({2, 3, 5}, {.class_weights = {1, 2}}), InvalidInput);
  EXPECT_THROW(LossCase({2, 3, 5}, {.label_smoothing = 1.5}), InvalidInput);
  Graph graph;
  const ValueId x = graph.add_input("x", ValueType::image({2, 3, 5, 6}));
  const ValueId y = graph.add_input("y", ValueType::image({2, 3, 5, 7}));
  EXPECT_THROW(cross_entropy(graph, x, add_target(graph, y, "labels"), "loss"), InvalidInput);
  EXPECT_THROW(cross_entropy(graph, x, y, "loss"), InvalidInput);
}

}  // namespace
}  // namespace tessera::cross_entropy_test
