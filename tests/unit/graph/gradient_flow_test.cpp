// Which values a gradient reaches.

#include "tessera/graph/gradient_flow.h"

#include <gtest/gtest.h>

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/relu.h"

namespace tessera::gradient_flow_test {
namespace {

const ValueType kImage = ValueType::image({1, 2, 4, 4});

/// The names of the values that a gradient reaches, in their order.
std::vector<std::string> reached(const Graph& graph) {
  const std::vector<bool> feeds = feeds_loss(graph);
  EXPECT_EQ(feeds.size(), graph.values().size());
  std::vector<std::string> names;
  for (size_t id = 0; id < feeds.size(); ++id)
    if (feeds[id]) names.push_back(graph.values()[id].name);
  return names;
}

using Names = std::vector<std::string>;

TEST(GradientFlow, ReachesThePredictionAndNotTheTarget) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId y = convolution(graph, x, "conv", {.out_channels = 2, .kernel = {1}});
  mean_squared_error(graph, y, add_real_target(graph, y, "target"), "loss");
  EXPECT_EQ(reached(graph), (Names{"image", "conv", "loss"}));
}

TEST(GradientFlow, ReachesNothingWithoutALoss) {
  Graph graph;
  graph.mark_output(relu(graph, graph.add_input("image", kImage), "act"));
  EXPECT_EQ(reached(graph), Names());
}

TEST(GradientFlow, ReachesNoBranchBesideTheLoss) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId aside = graph.add_input("aside", kImage);
  const ValueId y = relu(graph, x, "act");
  graph.mark_output(add(graph, y, aside, "sum"));
  mean_squared_error(graph, y, graph.add_input("target", kImage), "loss");
  EXPECT_EQ(reached(graph), (Names{"image", "act", "loss"}));
}

TEST(GradientFlow, StopsAtATargetThatIsComputed) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId t = graph.add_input("target", kImage);
  mean_squared_error(graph, relu(graph, x, "act"), relu(graph, t, "teacher"), "loss");
  EXPECT_EQ(reached(graph), (Names{"image", "act", "loss"}));
}

TEST(GradientFlow, ReachesAValueThatIsTargetAndPrediction) {
  Graph graph;
  const ValueId x = graph.add_input("image", kImage);
  const ValueId y = relu(graph, x, "act");
  mean_squared_error(graph, relu(graph, y, "student"), y, "loss");
  EXPECT_EQ(reached(graph), (Names{"image", "act", "student", "loss"}));
}

}  // namespace
}  // namespace tessera::gradient_flow_test
