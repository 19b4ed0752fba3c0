// Parts of networks put into others: names, weights that are shared, weights that are computed.

#include "tessera/graph/append.h"

#include <gtest/gtest.h>

#include "tessera/graph/transform.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/norm/batch_norm.h"

namespace tessera::append_test {
namespace {

using Names = std::vector<std::string>;

Graph encoder(int64_t batch = 1) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({batch, 2, 8, 8}));
  x = convolution(graph, x, "conv", {.out_channels = 3, .kernel = {2}, .stride = {2}});
  graph.mark_output(batch_norm(graph, x, "norm"));
  return graph;
}

Names parameter_names(const Graph& graph) {
  Names names;
  for (const Parameter& parameter : graph.parameters()) names.push_back(parameter.name);
  return names;
}

TEST(Append, SharesWeightsByName) {
  Graph graph;
  const ValueId a = graph.add_input("a", ValueType::image({1, 2, 8, 8}));
  const ValueId b = graph.add_input("b", ValueType::image({5, 2, 8, 8}));
  const std::vector<ValueId> first = append(graph, encoder(), a, "shared.");
  const std::vector<ValueId> second = append(graph, encoder(5), b, "shared.");
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(graph.value(first[0]).name, "shared.norm");
  EXPECT_EQ(graph.type(second[0]).shape(), (Shape{5, 3, 4, 4}));
  EXPECT_EQ(graph.nodes()[0].parameters, graph.nodes()[2].parameters);
  EXPECT_EQ(graph.nodes()[1].buffers, graph.nodes()[3].buffers);
  EXPECT_EQ(
      parameter_names(graph), parameter_names([] {
        Graph alone;
        append(alone, encoder(), alone.add_input("x", ValueType::image({1, 2, 8, 8})), "shared.");
        return alone;
      }()));
  EXPECT_TRUE(graph.outputs().empty());
}

TEST(Append, TakesTypesFromTheInput) {
  Graph graph;
  const ValueId image = graph.add_input("image", ValueType::image({1, 2, 16, 16}));
  const ValueId half =
      convolution(graph, image, "first", {.out_channels = 2, .kernel = {2}, .stride = {2}});
  const ValueId quarter = append(graph, encoder(), half, "part.")[0];
  EXPECT_EQ(graph.type(quarter).axes[2].stride, Ratio::of(4, 1));
}

TEST(Append, GivesEachCopyItsComputedWeights) {
  Graph part;
  const ParameterId source = part.add_parameter(
      {"raw", {3, 2, 2, 2}, ParameterRole::kTrainable, {Initial::Kind::kNormal, 1, {}}});
  const ParameterId weight = part.add_parameter(
      {"conv.weight", {3, 2, 2, 2}, ParameterRole::kDerived, {}, /*persistent=*/false});
  part.add_derivation({weight, {source}, {}});
  const ValueId x = part.add_input("image", ValueType::image({1, 2, 8, 8}));
  part.mark_output(convolution(part, x, "conv", {.out_channels = 3, .kernel = {2}, .bias = false}));
  Graph graph;
  const ValueId image = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  for (const char* prefix : {"a.", "b.", "a."}) append(graph, part, image, prefix);
  EXPECT_EQ(parameter_names(graph), (Names{"a.raw", "a.conv.weight", "b.raw", "b.conv.weight"}));
  ASSERT_EQ(graph.derivations().size(), 2u);
  EXPECT_EQ(graph.derivations()[1].result, 3);
  EXPECT_EQ(graph.derivations()[1].sources, (std::vector<int>{2}));
}

}  // namespace
}  // namespace tessera::append_test
