// Which group of workers runs what of a network for several domains.

#include "tessera/planner/domains.h"

#include <gtest/gtest.h>

#include <set>

#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::planner_domains_test {
namespace {

Graph digits(const std::string& options = "targets=2") {
  return build_model("dsn:base=2,code=4," + options, {4, 1, 8, 8});
}

/// The groups that run nodes whose names begin so.
std::set<int> groups_of(const Graph& graph, const DomainGroups& groups, const std::string& prefix) {
  std::set<int> found;
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    if (graph.nodes()[id].name.starts_with(prefix)) found.insert(groups.of_node[id]);
  return found;
}

TEST(DomainGroups, OneADomain) {
  const Graph graph = digits();
  const DomainGroups groups = group_by_domains(graph, 1);
  EXPECT_EQ(groups.names, (std::vector<std::string>{"source", "target1", "target2"}));
  EXPECT_EQ(groups_of(graph, groups, "shared.conv1"), (std::set{0, 1, 2}));
  EXPECT_EQ(groups_of(graph, groups, "head"), std::set{0});
  EXPECT_EQ(groups_of(graph, groups, "loss"), std::set{0});
  EXPECT_EQ(groups_of(graph, groups, "private1"), std::set{1});
  EXPECT_EQ(groups_of(graph, groups, "reconstruction2"), std::set{2});
}

/// Shared encoders and what needs these alone on the first, private ones and decoders on the
/// second.
TEST(DomainGroups, TwoADomain) {
  const Graph graph = digits();
  const DomainGroups groups = group_by_domains(graph, 2);
  EXPECT_EQ(groups.count(), 6);
  EXPECT_EQ(groups.names[3], "target1, second branch");
  EXPECT_EQ(groups_of(graph, groups, "shared.conv1"), (std::set{0, 2, 4}));
  EXPECT_EQ(groups_of(graph, groups, "head"), std::set{0});
  EXPECT_EQ(groups_of(graph, groups, "domain.fc1"), (std::set{0, 2, 4}));
  EXPECT_EQ(groups_of(graph, groups, "private1"), std::set{3});
  EXPECT_EQ(groups_of(graph, groups, "decoder"), (std::set{1, 3, 5}));
  EXPECT_EQ(groups_of(graph, groups, "difference2"), std::set{5});
  EXPECT_EQ(groups_of(graph, groups, "shared.rows_3"), std::set{5});
}

TEST(DomainGroups, WhatComparesATargetWithTheSourceIsTheTargets) {
  const Graph graph = digits("targets=2,similarity=mmd");
  const DomainGroups groups = group_by_domains(graph, 2);
  EXPECT_EQ(groups_of(graph, groups, "mmd1.between"), std::set{2});
  EXPECT_EQ(groups_of(graph, groups, "mmd2.second"), std::set{4});
  EXPECT_EQ(groups_of(graph, groups, "mmd2.first"), std::set{0});
}

TEST(DomainGroups, EachGroupIsCutIntoStagesOfItsOwn) {
  const Graph graph = digits();
  const DomainGroups groups = group_by_domains(graph, 2);
  Plan plan;
  plan.stages.resize(12);
  plan.stage_of = stages_by_domains(graph, plan, groups);
  std::set<int> used;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const int stage = plan.stage_of.at(graph.nodes()[id].name);
    EXPECT_EQ(stage / 2, groups.of_node[id]) << graph.nodes()[id].name;
    used.insert(stage);
  }
  EXPECT_EQ(used.size(), 12u);
}

TEST(DomainGroups, RefuseNetworksThatTheyDoNotFit) {
  EXPECT_EQ(
      refusal([] { group_by_domains(build_model("cnn2d:base=2,depth=2"), 1); }),
      "[--domains] the network reads 1 image, and each domain has one of its own; use a model "
      "for several domains, such as dsn:targets=2, or leave --domains out");
  EXPECT_EQ(
      refusal([] { group_by_domains(build_model("dann:base=2,code=4"), 2); }),
      "[--domains] the image of source is read by one branch of the network, and there are two "
      "groups of workers for it; use --domains 1");
  const Graph graph = digits();
  Plan plan;
  plan.stages.resize(3 * 60);
  EXPECT_NE(refusal([&] {
              stages_by_domains(graph, plan, group_by_domains(graph, 1));
            }).find("for 60 stages of its own; use at most"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::planner_domains_test
