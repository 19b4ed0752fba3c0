#include "tessera/job/freeze.h"

#include <gtest/gtest.h>

#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::freeze_test {
namespace {

std::vector<std::string> trainable(const Graph& graph) {
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters())
    if (parameter.role == ParameterRole::kTrainable) names.push_back(parameter.name);
  return names;
}

TEST(Freeze, TakesPatternsOfWholeNames) {
  const Graph graph = build_model("cnn2d:base=2,depth=2");
  EXPECT_EQ(trainable(freeze(graph, "block1.*,head.bias")),
            (std::vector<std::string>{"block2.conv.weight", "block2.norm.weight",
                                      "block2.norm.bias", "head.weight"}));
  EXPECT_EQ(trainable(freeze(graph, "block?.*")),
            (std::vector<std::string>{"head.weight", "head.bias"}));
  EXPECT_EQ(trainable(freeze(graph, "*.norm.*")),
            (std::vector<std::string>{"block1.conv.weight", "block2.conv.weight", "head.weight",
                                      "head.bias"}));
}

TEST(Freeze, LeavesRunningStatisticsWhatTheyAre) {
  const Graph frozen = freeze(build_model("cnn2d:base=2,depth=1"), "block1.*");
  for (const Parameter& parameter : frozen.parameters()) {
    const bool is_statistic = parameter.name.find("running") != std::string::npos;
    EXPECT_EQ(parameter.role == ParameterRole::kBuffer, is_statistic) << parameter.name;
  }
}

TEST(Freeze, RefusesPatternsThatNameNothing) {
  const Graph graph = build_model("cnn2d:base=2,depth=1");
  expect_refusal([&] { freeze(graph, "head.*,encoder.*"); },
                 "[--freeze] 'encoder.*' names no weight");
  expect_refusal([&] { freeze(graph, "head"); }, "weights are block1.conv.weight, ");
  expect_refusal([&] { freeze(graph, "*.running_mean"); }, "names no weight");
  expect_refusal([&] { freeze(graph, "head.*,"); }, "'' names no weight");
  expect_refusal([&] { freeze(graph, "*"); }, "leaves no weight to train");
}

}  // namespace
}  // namespace tessera::freeze_test
