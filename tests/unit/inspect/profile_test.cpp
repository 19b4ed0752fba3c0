// Costs and totals, against numbers worked out by hand.

#include "tessera/inspect/profile.h"

#include <gtest/gtest.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/inspect/example_graphs.h"

namespace tessera::profile_test {
namespace {

const OperatorProfile& row(const GraphProfile& profile, const std::string& name) {
  for (const OperatorProfile& row : profile.operators)
    if (row.name == name) return row;
  throw std::runtime_error("no operator " + name);
}

/// 2 channels of 8x8 → 4 of 8x8 → 4 of 4x4 → 64 features → 3 classes.
Graph little_graph() {
  Graph graph = image_graph({1, 2, 8, 8});
  ValueId x = convolution(graph, 0, "conv", {.out_channels = 4, .kernel = {3}, .padding = {1}});
  x = relu(graph, batch_norm(graph, x, "norm"), "relu");
  x = max_pool(graph, x, "pool", {.kernel = {2}});
  x = linear(graph, flatten(graph, x), "head", {.out_features = 3});
  graph.mark_output(x);
  cross_entropy(graph, x, add_target(graph, x, "target"), "loss");
  return graph;
}

TEST(Profile, CountsALittleNetwork) {
  const GraphProfile profiled = profile(little_graph(), at::kFloat);
  ASSERT_EQ(profiled.operators.size(), 7u);
  const OperatorProfile conv = row(profiled, "conv");
  EXPECT_EQ(conv.kind, "convolution");
  EXPECT_EQ(conv.output_shape, (Shape{1, 4, 8, 8}));
  EXPECT_EQ(conv.parameters, 4 * 2 * 9 + 4);
  EXPECT_EQ(conv.flops, 2.0 * (4 * 64) * (2 * 9));
  EXPECT_EQ(conv.output_bytes, 4 * 64 * 4);
  EXPECT_FALSE(conv.has_statistics);
  EXPECT_EQ(row(profiled, "norm").parameters, 4 + 4);  // running statistics are not parameters
  EXPECT_TRUE(row(profiled, "norm").has_statistics);
  EXPECT_EQ(row(profiled, "relu").flops, 4 * 64);
  EXPECT_EQ(row(profiled, "pool").flops, 4 * 16 * 4);
  EXPECT_EQ(row(profiled, "pool").output_bytes, 4 * 16 * 4);
  EXPECT_EQ(row(profiled, "head").parameters, 64 * 3 + 3);
  EXPECT_EQ(row(profiled, "head").flops, 2 * 64 * 3);
  EXPECT_EQ(row(profiled, "head").output_bytes, 3 * 4);

  EXPECT_EQ(profiled.parameters, 76 + 8 + 195);
  EXPECT_EQ(profiled.trainable_parameters, profiled.parameters);
  EXPECT_EQ(profiled.parameter_bytes, 4 * profiled.parameters);
  EXPECT_EQ(profiled.buffer_bytes, 4 * 8);
  EXPECT_EQ(profiled.output_bytes, 4 * (3 * 256 + 2 * 64 + 3));
}

TEST(Profile, TotalsAreSumsOfTheOperators) {
  const GraphProfile profiled = profile(build_model("unet2d:base=4,depth=3"), at::kDouble);
  double flops = 0, flops_of_kinds = 0;
  int64_t bytes = 0, parameters = 0, count = 0, parameters_of_kinds = 0;
  for (const OperatorProfile& row : profiled.operators) {
    flops += row.flops;
    bytes += row.output_bytes;
    parameters += row.new_parameters;
  }
  for (const KindProfile& kind : profiled.kinds) {
    flops_of_kinds += kind.total_flops;
    parameters_of_kinds += kind.total_parameters;
    count += kind.count;
  }
  EXPECT_EQ(profiled.flops, flops);
  EXPECT_EQ(profiled.flops, flops_of_kinds);
  EXPECT_EQ(profiled.output_bytes, bytes);
  EXPECT_EQ(profiled.parameters, parameters);
  EXPECT_EQ(profiled.parameters, parameters_of_kinds);
  EXPECT_EQ(profiled.parameters, build_model("unet2d:base=4,depth=3").num_trainable());
  EXPECT_EQ(static_cast<size_t>(count), profiled.operators.size());
  EXPECT_EQ(profiled.kinds[0].kind, "convolution");  // the most FLOPs
}

TEST(Profile, DoublesAreTwiceAsLarge) {
  const GraphProfile single = profile(little_graph(), at::kFloat);
  const GraphProfile twice = profile(little_graph(), at::kDouble);
  EXPECT_EQ(2 * single.output_bytes, twice.output_bytes);
  EXPECT_EQ(2 * single.parameter_bytes, twice.parameter_bytes);
  EXPECT_EQ(single.flops, twice.flops);
}

TEST(Profile, ALossStoresNothing) {
  const GraphProfile profiled = profile(little_graph(), at::kFloat);
  EXPECT_EQ(row(profiled, "loss").output_bytes, 0);
  EXPECT_TRUE(row(profiled, "loss").output_shape.empty());
}

TEST(Profile, SharedParametersCountOnce) {
  Graph graph = image_graph({1, 2, 8, 8});
  const ConvolutionOptions options{.out_channels = 2, .kernel = {3}, .padding = {1}};
  const ValueId x = convolution(graph, 0, "conv", options);
  convolution(graph, x, "conv", options);  // the same weights; the node becomes conv_2
  const GraphProfile profiled = profile(graph, at::kFloat);
  const int64_t numel = 2 * 2 * 9 + 2;
  EXPECT_EQ(row(profiled, "conv").parameters, numel);
  EXPECT_EQ(row(profiled, "conv").new_parameters, numel);
  EXPECT_EQ(row(profiled, "conv_2").parameters, numel);
  EXPECT_EQ(row(profiled, "conv_2").new_parameters, 0);
  EXPECT_EQ(profiled.parameters, numel);
  EXPECT_EQ(profiled.kinds[0].total_parameters, numel);
  EXPECT_EQ(profiled.kinds[0].parameters.min, numel);  // as each operator uses them
}

TEST(Profile, FrozenParametersAreNotTrainable) {
  Graph graph = image_graph({1, 2, 8, 8});
  graph.add_parameter({"conv.weight", {2, 2, 3, 3}, ParameterRole::kFrozen, {}});
  convolution(graph, 0, "conv", {.out_channels = 2, .kernel = {3}});
  const GraphProfile profiled = profile(graph, at::kFloat);
  EXPECT_EQ(profiled.parameters, 36 + 2);
  EXPECT_EQ(profiled.trainable_parameters, 2);
}

TEST(Profile, SpreadOfAKind) {
  Graph graph = image_graph({1, 1, 8, 8});
  ValueId x = 0;
  for (int64_t channels : {1, 2, 8, 4})
    x = convolution(graph, x, "conv" + std::to_string(channels),
                    {.out_channels = channels, .kernel = {1}, .bias = false});
  const KindProfile kind = profile(graph, at::kFloat).kinds[0];
  EXPECT_EQ(kind.count, 4);
  EXPECT_EQ(kind.output_bytes.min, 64 * 4);
  EXPECT_EQ(kind.output_bytes.median, 64 * 4 * 3);  // between 2 and 4 channels
  EXPECT_EQ(kind.output_bytes.max, 64 * 4 * 8);
  EXPECT_EQ(kind.total_output_bytes, 64 * 4 * 15);
  EXPECT_EQ(kind.parameters.max, 32);
  EXPECT_EQ(kind.flops.min, 2.0 * 64);
}

TEST(Profile, BytesBeyondFourGigabytes) {
  Graph graph = image_graph({1, 1, 100'000, 100'000});
  relu(graph, 0, "relu");
  EXPECT_EQ(profile(graph, at::kFloat).output_bytes, 40'000'000'000);
}

TEST(Profile, AnEmptyGraph) {
  const GraphProfile profiled = profile(image_graph({1, 1, 4}), at::kFloat);
  EXPECT_TRUE(profiled.operators.empty());
  EXPECT_EQ(profiled.flops, 0);
}

}  // namespace
}  // namespace tessera::profile_test
