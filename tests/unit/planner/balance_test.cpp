#include "tessera/planner/balance.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/base/error.h"
#include "tessera/lower/rewrite.h"
#include "tessera/lower/task_costs.h"
#include "tessera/ops/norm/plane_norm_op.h"
#include "tessera/planner/balance_costs.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/planner/balance_cases.h"
#include "tests/unit/refusal.h"

namespace tessera::balance_test {
namespace {

constexpr BalanceBy kAll[] = {BalanceBy::kLayers, BalanceBy::kParameters, BalanceBy::kMemory,
                              BalanceBy::kTime};

std::vector<int> stages(const Graph& graph, const std::map<std::string, int>& by_name) {
  EXPECT_EQ(by_name.size(), graph.nodes().size());
  std::vector<int> list;
  for (const Node& node : graph.nodes()) list.push_back(by_name.at(node.name));
  return list;
}

TEST(Balance, HasNames) {
  for (BalanceBy by : kAll) EXPECT_EQ(parse_balance(to_string(by)), by);
  expect_refusal([] { parse_balance("luck"); }, "layers, parameters, memory, time");
}

TEST(Balance, AssignsEveryNodeAndFillsEveryStage) {
  const Graph graph = build_model("unet2d:base=2,depth=3,norm=none", {4, 3, 16, 16});
  for (BalanceBy by : kAll)
    for (const std::string& name : schedule_names()) {
      const Plan plan = staged_plan(3, 3, parse_schedule(name));
      const std::map<std::string, int> balanced = balance(graph, plan, {.by = by});
      const std::vector<int> list = stages(graph, balanced);
      EXPECT_EQ(std::set<int>(list.begin(), list.end()), (std::set<int>{0, 1, 2})) << name;
      EXPECT_EQ(balance(graph, plan, {.by = by}), balanced) << name;
    }
}

TEST(Balance, InterleavedChunksGoRoundTheStages) {
  const Graph graph = build_model("unet2d:base=2,depth=3,norm=none", {4, 3, 16, 16});
  const Plan plan = staged_plan(2, 2, ScheduleKind::kInterleaved);
  for (BalanceBy by : kAll)
    for (int chunks : {1, 3}) {
      std::vector<int> list =
          stages(graph, balance(graph, plan, {.by = by, .chunks_per_stage = chunks}));
      list.erase(std::unique(list.begin(), list.end()), list.end());
      EXPECT_EQ(list, stages_in_turn(2, 2 * chunks)) << to_string(by);
    }
}

TEST(Balance, OneStageIsAllThereIs) {
  const Graph graph = build_model("cnn2d:base=2,depth=2", {1, 1, 16, 16});
  for (BalanceBy by : kAll)
    for (const auto& [name, stage] : balance(graph, {}, {.by = by})) EXPECT_EQ(stage, 0) << name;
}

TEST(Balance, LayersAreSharedOutEvenly) {
  for (const char* model : {"unet2d:base=2,depth=3", "vgg11:width=2", "resnet18:width=2"}) {
    const Graph graph = build_model(model, {1, 3, 64, 64});
    for (int num_stages : {2, 3, 4, 7}) {
      const std::vector<int> list =
          stages(graph, balance(graph, staged_plan(num_stages), {.by = BalanceBy::kLayers}));
      EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
      std::vector<int> layers(num_stages, 0);
      for (size_t id = 0; id < list.size(); ++id) layers[list[id]] += is_layer(graph.nodes()[id]);
      const auto [fewest, most] = std::minmax_element(layers.begin(), layers.end());
      EXPECT_LE(*most - *fewest, 1) << model << " on " << num_stages;
    }
  }
}

TEST(Balance, KeepsTogetherWhatBecomesOneOperator) {
  const Graph graph = build_model("resnet18:width=2", {1, 3, 64, 64});
  const std::vector<NodeId> places = cut_places(graph, 4);
  std::set<NodeId> taking;  // nodes that another becomes a part of
  for (NodeId id = 0; id < std::ssize(graph.nodes()); ++id)
    if (const auto reader = fusing_reader(graph, id)) taking.insert(*reader);
  EXPECT_GT(taking.size(), 10u);
  for (const Node& node : graph.nodes()) {
    const std::vector<Use>& uses = graph.value(node.output).uses;
    if (plane_norm_op(*node.op) == nullptr || uses.size() != 1) continue;
    const bool is_place = std::binary_search(places.begin(), places.end(), uses[0].node);
    EXPECT_NE(is_place, taking.contains(uses[0].node)) << node.name;
  }
  // ... unless there would not be enough stages.
  const int num_nodes = static_cast<int>(graph.nodes().size());
  const std::vector<int> list =
      stages(graph, balance(graph, staged_plan(num_nodes), {.by = BalanceBy::kTime}));
  EXPECT_EQ(std::set<int>(list.begin(), list.end()).size(), graph.nodes().size());
}

TEST(Balance, RefusesMoreStagesThanNodes) {
  const Graph graph = build_model("cnn2d:base=2,depth=2", {2, 1, 16, 16});
  const int num_nodes = static_cast<int>(graph.nodes().size());
  for (BalanceBy by : kAll)
    expect_refusal([&] { balance(graph, staged_plan(num_nodes + 1), {.by = by}); },
                   fmt::format("{} nodes for {} stages", num_nodes, num_nodes + 1));
  expect_refusal(
      [&] {
        balance(graph, staged_plan(2, 2, ScheduleKind::kInterleaved), {.chunks_per_stage = 50});
      },
      "50 chunks");
}

TEST(Balance, ParametersAndTimeAreThoseOfAnExhaustiveSearch) {
  const Graph graph = build_model("unet2d:base=2,depth=2", {1, 3, 16, 16});
  Plan plan = staged_plan(3);
  plan.stages = {{2, 2}, {1, 1}, {1, 2}};
  const std::vector<double> ranks{4, 1, 2};
  const std::vector<NodeId> places = cut_places(graph, 3);
  const auto weights = [&](const std::vector<int>& list) {
    std::vector<double> sums(3, 0);
    for (size_t id = 0; id < list.size(); ++id)
      for (ParameterId parameter : graph.nodes()[id].parameters)
        sums[list[id]] += static_cast<double>(graph.parameters()[parameter].numel());
    return sums;
  };
  const BackwardValues backward = analyse_backward(graph, {});
  const auto seconds = [&](const std::vector<int>& list) {
    std::vector<double> sums(3, 0);
    for (size_t id = 0; id < list.size(); ++id) {
      const Box whole = Box::whole(graph.nodes()[id].types.output.shape());
      const TaskCosts costs =
          kernel_costs(Roofline(), graph, static_cast<NodeId>(id), backward, whole);
      sums[list[id]] += (costs.forward + costs.backward + costs.weight) / ranks[list[id]];
    }
    return sums;
  };
  double least_weights = 1e300, least_seconds = 1e300;
  for_each_cut(places, {0, 1, 2}, [&](const StagedSegments& assignment) {
    least_weights = std::min(least_weights, largest(weights(stage_of_nodes(assignment))));
    least_seconds = std::min(least_seconds, largest(seconds(stage_of_nodes(assignment))));
  });
  const auto by_parameters = balance(graph, plan, {.by = BalanceBy::kParameters});
  const auto by_time = balance(graph, plan, {.by = BalanceBy::kTime});
  EXPECT_EQ(largest(weights(stages(graph, by_parameters))), least_weights);
  EXPECT_NEAR(largest(seconds(stages(graph, by_time))) / least_seconds, 1, 1e-12);
}

constexpr const char* kSmallUnet = "unet2d:base=2,depth=2";

TEST(Balance, ReadsStagesThatPeopleWrite) {
  const Graph graph = build_model(kSmallUnet, {1, 3, 16, 16});
  const auto by_name = balance_from_json(
      graph, 2, R"([["enc1.*", "dec1.conv1", "d*"], ["*", "dec1.conv*", "enc1.relu2"]])", "b.json");
  EXPECT_EQ(by_name.size(), graph.nodes().size());
  EXPECT_EQ(by_name.at("enc1.conv1"), 0);
  EXPECT_EQ(by_name.at("enc1.relu2"), 1);   // a name is longer than a beginning
  EXPECT_EQ(by_name.at("dec1.conv1"), 0);   // ... also of the same length
  EXPECT_EQ(by_name.at("dec1.conv2"), 1);   // the longer beginning
  EXPECT_EQ(by_name.at("dec1.concat"), 0);  // "d*" beats "*"
  EXPECT_EQ(by_name.at("loss"), 1);
}

TEST(Balance, RefusesStagesThatDoNotFit) {
  const Graph graph = build_model(kSmallUnet, {1, 3, 16, 16});
  const auto refused = [&](const char* text, const std::string& part) {
    expect_refusal([&] { balance_from_json(graph, 2, text, "b.json"); }, part);
  };
  refused("[[\"enc1.*\"], [\"dec1.*\"]]", "pool1 is in no stage");
  refused("[[\"*\"], [\"dec7.*\"]]", "\"dec7.*\" of stage 1 fits no node");
  refused("[[\"*\"], [\"dec1\"]]", "\"dec1\" of stage 1 fits no node");
  refused("[[\"*\"], []]", "stage 1 has no nodes");
  refused("[[\"*\", \"loss\"], [\"loss*\"]]", "stage 1 has no nodes");
  refused("[[\"*\"], [\"loss\", \"*\"]]", "\"*\" is in stage 0 and in stage 1");
  refused("[[\"*\"]]", "1 list of nodes for 2 stages");
  refused("[[\"*\"], [\"\"]]", "give names of nodes");
  refused("[[\"*\"], [3]]", "stage 1 holds 3");
  for (const char* text : {"{}", "[1, 2]", "[[\"*\"], \"loss\"]"})
    refused(text, "[balance] b.json: it is not a list of one list per stage");
  for (const char* text : {"", "[["}) refused(text, "[balance] b.json: it is not JSON");
}

}  // namespace
}  // namespace tessera::balance_test
