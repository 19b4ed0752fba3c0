// Rewrites and buckets: which operators are left, also with a pass switched off, and in what order
// gradients are reduced.

#include <gtest/gtest.h>

#include "tessera/lower/buckets.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/rewrite.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::rewrite_test {
namespace {

std::vector<std::string> kinds(const Graph& graph) {
  std::vector<std::string> kinds;
  for (const Node& node : graph.nodes()) kinds.push_back(node.op->kind());
  return kinds;
}

using Kinds = std::vector<std::string>;

TEST(Rewrite, FusesNormAndRelu) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  relu(graph, batch_norm(graph, x, "norm"), "relu");
  EXPECT_EQ(kinds(rewrite(graph, {})), (Kinds{"batch_norm_relu"}));
  EXPECT_EQ(kinds(rewrite(graph, {}, {"fuse-norm-relu"})), (Kinds{"batch_norm", "relu"}));
}

/// ReLU6 is a hardtanh from 0 to 6; others stay.
TEST(Rewrite, FusesNormAndRelu6) {
  const auto with_high = [](double high) {
    Graph graph;
    const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
    pointwise(graph, batch_norm(graph, x, "norm"), "act", {PointwiseFunction::kHardtanh, 0, high});
    return kinds(rewrite(graph, {}));
  };
  EXPECT_EQ(with_high(6), (Kinds{"batch_norm_relu6"}));
  EXPECT_EQ(with_high(5), (Kinds{"batch_norm", "hardtanh"}));
}

TEST(Rewrite, KeepsANormThatSomebodyElseReads) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  const ValueId norm = batch_norm(graph, x, "norm");
  relu(graph, norm, "relu");
  convolution(graph, norm, "conv", {1, {1}});
  EXPECT_EQ(kinds(rewrite(graph, {})), (Kinds{"batch_norm", "relu", "convolution"}));
}

TEST(Rewrite, KeepsANormThatIsAnOutput) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  const ValueId norm = batch_norm(graph, x, "norm");
  relu(graph, norm, "relu");
  graph.mark_output(norm);
  EXPECT_EQ(kinds(rewrite(graph, {})), (Kinds{"batch_norm", "relu"}));
}

/// The end of a residual block: x → conv → norm, then its sum with x, then a ReLU.
Graph residual_block(const char* norm) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  ValueId y = convolution(graph, x, "conv", {2, {1}});
  y = norm == std::string("group") ? group_norm(graph, y, "norm") : batch_norm(graph, y, "norm");
  relu(graph, add(graph, x, y, "sum"), "relu");
  return graph;
}

TEST(Rewrite, MakesTheEndOfAResidualBlockOneOperator) {
  EXPECT_EQ(kinds(rewrite(residual_block("batch"), {})),
            (Kinds{"convolution", "batch_norm_add_relu"}));
  EXPECT_EQ(kinds(rewrite(residual_block("group"), {})),
            (Kinds{"convolution", "group_norm_add_relu"}));
  const Graph rewritten = rewrite(residual_block("batch"), {});
  EXPECT_EQ(rewritten.node(1).inputs,
            (std::vector<ValueId>{rewritten.node(0).output, rewritten.inputs()[0]}));
  const auto without = [](const std::vector<std::string>& names) {
    return kinds(rewrite(residual_block("batch"), {}, names));
  };
  EXPECT_EQ(without({"fuse-norm-relu"}), (Kinds{"convolution", "batch_norm_add", "relu"}));
  EXPECT_EQ(without({"fuse-norm-add"}), (Kinds{"convolution", "batch_norm", "add", "relu"}));
}

/// The later of two norms takes the sum, which stands where the sum stood; with itself a norm has
/// two readings.
TEST(Rewrite, AddsOneOfTwoNormsToTheOther) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  const ValueId a = batch_norm(graph, x, "a"), b = batch_norm(graph, x, "b");
  const ValueId sum = add(graph, b, a, "sum");
  add(graph, sum, batch_norm(graph, sum, "c"), "again");
  const Graph rewritten = rewrite(graph, {});
  EXPECT_EQ(kinds(rewritten), (Kinds{"batch_norm", "batch_norm_add", "batch_norm_add"}));
  EXPECT_EQ(rewritten.node(1).name, "b");
  EXPECT_EQ(rewritten.node(2).inputs,
            (std::vector<ValueId>{rewritten.node(1).output, rewritten.node(1).output}));
  Graph doubled;
  const ValueId norm =
      batch_norm(doubled, doubled.add_input("image", ValueType::image({1, 2, 8, 8})), "norm");
  add(doubled, norm, norm, "sum");
  EXPECT_EQ(kinds(rewrite(doubled, {})), (Kinds{"batch_norm", "add"}));
}

TEST(Rewrite, CutsAGlobalPoolIntoParts) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  graph.mark_output(global_average_pool(graph, x));
  const Graph rewritten = rewrite(graph, {1, {2, 2}, {}});
  EXPECT_EQ(kinds(rewritten), (Kinds{"partial_sum", "sum_parts"}));
  EXPECT_EQ(rewritten.value(rewritten.node(0).output).type.shape(), (Shape{1, 2, 4}));
}

TEST(Rewrite, KeepsTheAxesOfASqueeze) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({2, 3, 8, 6}));
  const ValueId squeezed = spatial_reduction(graph, x, "squeeze", {});
  const Graph rewritten = rewrite(graph, {1, {2, 2}, {}});
  EXPECT_EQ(kinds(rewritten), (Kinds{"partial_sum", "sum_parts"}));
  EXPECT_EQ(rewritten.value(rewritten.node(1).output).type, graph.type(squeezed));
}

TEST(Rewrite, LeavesAReductionOverSomeAxes) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({2, 3, 8, 6}));
  spatial_reduction(graph, x, "rows", {.axes = {1}});
  EXPECT_EQ(kinds(rewrite(graph, {1, {2, 2}, {}})), (Kinds{"spatial_mean"}));
}

// Squeeze and excitation moves numbers per channel, never a map: 3 partial sums of 2 channels to
// the owner of the 1x1 map, and its 2 numbers back to 3 others. Pieces of one rank move nothing.
TEST(Rewrite, SqueezeAndExcitationMovesNoMap) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  const ValueId squeezed = spatial_reduction(graph, x, "squeeze", {});
  arithmetic(graph, x, squeezed, "excite", Arithmetic::kMultiply);
  EXPECT_EQ(exchanged_elements(graph, {1, {2, 2}, {}}), 12);
  EXPECT_EQ(exchanged_elements(graph, {1, {1, 1}, {2, 2}}), 0);
}

TEST(Rewrite, MultipliesPartsOnlyWhileTheBatchIsSmall) {
  const auto head = [](int64_t batch) {
    Graph graph;
    const ValueId x = graph.add_input("image", ValueType::image({batch, 2, 8, 8}));
    linear(graph, flatten(graph, x), "fc", {5});
    return rewrite(graph, {1, {2, 2}, {}});
  };
  EXPECT_EQ(kinds(head(3)), (Kinds{"partial_linear", "sum_parts"}));
  EXPECT_EQ(kinds(head(4)), (Kinds{"flatten", "linear"}));
}

TEST(Rewrite, MultipliesWholeMapsWithoutThePass) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  linear(graph, flatten(graph, x), "fc", {5});
  const Plan plan{1, {2, 2}, {}};
  EXPECT_EQ(kinds(rewrite(graph, plan)), (Kinds{"partial_linear", "sum_parts"}));
  EXPECT_EQ(kinds(rewrite(graph, plan, {"linear-by-parts"})), (Kinds{"flatten", "linear"}));
}

/// Micro-batches are what has to keep the ranks busy, not the batch.
TEST(Rewrite, MultipliesPartsWhileAMicroBatchIsSmall) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({8, 2, 8, 8}));
  linear(graph, flatten(graph, x), "fc", {5});
  Plan plan{1, {2, 2}, {}};
  plan.micro_batches = 2;
  EXPECT_EQ(kinds(rewrite(graph, plan)), (Kinds{"flatten", "linear"}));
  plan.micro_batches = 4;
  EXPECT_EQ(kinds(rewrite(graph, plan)), (Kinds{"partial_linear", "sum_parts"}));
}

/// Where another stage begins between two nodes, they stay two: each stage runs its own.
TEST(Rewrite, FusesNothingOverAStageBorder) {
  const auto on_stages = [](const Graph& graph, int first, int second) {
    Plan plan;
    plan.stages = {{2, 2}, {2, 2}};
    plan.stage_of = {{graph.node(0).name, first}, {graph.node(1).name, second}};
    return kinds(rewrite(graph, plan));
  };
  Graph norm;
  relu(norm, batch_norm(norm, norm.add_input("image", ValueType::image({1, 2, 8, 8})), "norm"),
       "relu");
  EXPECT_EQ(on_stages(norm, 0, 1), (Kinds{"batch_norm", "relu"}));
  EXPECT_EQ(on_stages(norm, 1, 0), (Kinds{"batch_norm", "relu"}));
  EXPECT_EQ(on_stages(norm, 1, 1), (Kinds{"batch_norm_relu"}));
  Graph head;
  linear(head, flatten(head, head.add_input("image", ValueType::image({1, 2, 8, 8}))), "fc", {5});
  EXPECT_EQ(on_stages(head, 0, 1), (Kinds{"flatten", "linear"}));
  EXPECT_EQ(on_stages(head, 1, 0), (Kinds{"flatten", "linear"}));
  EXPECT_EQ(on_stages(head, 1, 1), (Kinds{"partial_linear", "sum_parts"}));
}

/// Each pass is its own: without one, the others do what they always do.
TEST(Rewrite, PassesDoNotNeedEachOther) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  x = relu(graph, batch_norm(graph, x, "norm"), "relu");
  graph.mark_output(global_average_pool(graph, x));
  graph.mark_output(linear(graph, flatten(graph, x), "fc", {5}));
  const auto without = [&](const std::vector<std::string>& names) {
    return kinds(rewrite(graph, {1, {2, 2}, {}}, names));
  };
  EXPECT_EQ(without({}),
            (Kinds{"batch_norm_relu", "partial_sum", "sum_parts", "partial_linear", "sum_parts"}));
  EXPECT_EQ(without({"fuse-norm-relu"}), (Kinds{"batch_norm", "relu", "partial_sum", "sum_parts",
                                                "partial_linear", "sum_parts"}));
  EXPECT_EQ(without({"linear-by-parts"}),
            (Kinds{"batch_norm_relu", "partial_sum", "sum_parts", "flatten", "linear"}));
  EXPECT_EQ(without({"linear-by-parts", "fuse-norm-relu"}),
            (Kinds{"batch_norm", "relu", "partial_sum", "sum_parts", "flatten", "linear"}));
}

TEST(Rewrite, RefusesToLeaveOutWhatItMustDo) {
  const auto without = [](const std::string& name) {
    return refusal([&] { rewrite({}, {}, {name}); });
  };
  EXPECT_EQ(without("fuse"),
            "[rewrite] there is no pass fuse; those that can be left out are fuse-norm-add, "
            "fuse-norm-relu, linear-by-parts");
  EXPECT_EQ(without("sums-by-parts"),
            "[rewrite] sums-by-parts cannot be left out: a sum or mean over all of space, which "
            "has no kernels of its own, becomes a partial sum of each cell of the grid and their "
            "sum; those that can be left out are fuse-norm-add, fuse-norm-relu, "
            "linear-by-parts");
}

TEST(Rewrite, TheLoweringIsToldWhatToLeaveOut) {
  const Graph graph = build_model("cnn2d:base=2,depth=2", {1, 3, 16, 16});
  const auto count = [&](const std::vector<std::string>& without) {
    LowerOptions options;
    options.without_rewrites = without;
    return std::ranges::count(kinds(lower(graph, {}, options).graph), "batch_norm_relu");
  };
  EXPECT_GT(count({}), 0);
  EXPECT_EQ(count({"fuse-norm-relu"}), 0);
}

TEST(Buckets, ComeInTheOrderOfBackwardAndHoldEveryParameterOnce) {
  const Graph graph = build_model("unet2d:base=4,depth=3", {1, 3, 32, 32});
  std::vector<int> seen(graph.parameters().size(), 0);
  const std::vector<Members> holders(seen.size(), Members{0, 1});
  const std::vector<BucketPlan> buckets = plan_buckets(graph, holders, 1000);
  EXPECT_GT(buckets.size(), 3u);
  ParameterId last = static_cast<ParameterId>(seen.size());  // parameters come in node order here
  for (const BucketPlan& bucket : buckets) {
    EXPECT_EQ(bucket.holders, (Members{0, 1}));
    EXPECT_LE(*std::max_element(bucket.parameters.begin(), bucket.parameters.end()), last);
    last = *std::min_element(bucket.parameters.begin(), bucket.parameters.end());
    for (ParameterId id : bucket.parameters) ++seen[id];
  }
  for (size_t id = 0; id < seen.size(); ++id)
    EXPECT_EQ(seen[id], graph.parameters()[id].role == ParameterRole::kTrainable ? 1 : 0);
}

/// One reduction must have the same ranks for all of its parameters.
TEST(Buckets, HaveOneSetOfHolders) {
  const Graph graph = build_model("unet2d:base=4,depth=3", {1, 3, 32, 32});
  std::vector<Members> holders;
  for (size_t id = 0; id < graph.parameters().size(); ++id)
    holders.push_back(id % 3 == 0 ? Members{0} : Members{1, 2});
  size_t parameters = 0;
  for (const BucketPlan& bucket : plan_buckets(graph, holders, 1 << 30)) {
    parameters += bucket.parameters.size();
    for (ParameterId id : bucket.parameters) EXPECT_EQ(bucket.holders, holders[id]);
  }
  EXPECT_GT(parameters, 10u);
}

/// The first are there while activations take most; the last have no backward left to hide behind.
TEST(Buckets, AreSmallAtBothEnds) {
  const Graph graph = build_model("unet2d:base=32,depth=5", {1, 3, 64, 64});
  const std::vector<Members> holders(graph.parameters().size(), Members{0, 1});
  int64_t all = 0, first = 0, last = 0;
  const std::vector<BucketPlan> buckets = plan_buckets(graph, holders, 1 << 30);
  for (const BucketPlan& bucket : buckets) {
    last = 0;
    for (ParameterId id : bucket.parameters) last += graph.parameters()[id].numel();
    all += last;
    if (first == 0) first = last;
  }
  EXPECT_GT(all, 7'000'000);
  EXPECT_LE(first, all / 20);
  EXPECT_LE(last, all / 20);
  EXPECT_LE(buckets.size(), 16u);
}

TEST(Buckets, StartBeforeBackwardEnds) {
  LowerOptions options;
  options.bucket_elements = 1000;
  const Lowered lowered =
      lower(build_model("unet2d:base=4,depth=3", {1, 3, 32, 32}), {1, {2, 1}, {}}, options);
  const Program& program = lowered.programs[0];
  int runs_after_first_start = -1;
  for (const Instruction& instruction : program.instructions) {
    if (const auto* reduce = std::get_if<StartReduce>(&instruction);
        reduce && reduce->buffer != program.loss && runs_after_first_start < 0)
      runs_after_first_start = 0;
    if (std::holds_alternative<tessera::Run>(instruction) && runs_after_first_start >= 0)
      ++runs_after_first_start;
  }
  EXPECT_GT(runs_after_first_start, 20);
}

}  // namespace
}  // namespace tessera::rewrite_test
