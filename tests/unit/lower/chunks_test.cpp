// Which parts of a network run in one go, for any assignment of nodes to stages, and what can run
// before the first micro-batch.

#include "tessera/lower/chunks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tessera/base/error.h"
#include "tessera/lower/early.h"
#include "tessera/lower/rewrite.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/dice.h"
#include "tessera/ops/loss/regression_loss.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/resize_labels.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::chunks_test {
namespace {

NodeId num_nodes(const Graph& graph) { return static_cast<NodeId>(graph.nodes().size()); }

/// Consecutive parts of the node order, of about the same size.
std::vector<int> in_parts(const Graph& graph, const std::vector<int>& stage_of_part) {
  std::vector<int> stages;
  for (int64_t id = 0; id < num_nodes(graph); ++id)
    stages.push_back(stage_of_part[id * std::ssize(stage_of_part) / num_nodes(graph)]);
  return stages;
}

std::vector<int> stages_of(const std::vector<Chunk>& chunks) {
  std::vector<int> stages;
  for (const Chunk& chunk : chunks) stages.push_back(chunk.stage);
  return stages;
}

TEST(Chunks, StagesThatFollowEachOtherAreOneEach) {
  const Graph graph = build_model("unet2d:base=2,depth=3", {1, 3, 16, 16});
  const std::vector<Chunk> chunks = make_chunks(graph, in_parts(graph, {0, 1, 2}));
  EXPECT_EQ(stages_of(chunks), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(chunks[0].chunks_before, (std::vector<int>{}));
  EXPECT_EQ(chunks[1].chunks_before, (std::vector<int>{0}));
  EXPECT_EQ(chunks[2].chunks_before, (std::vector<int>{0, 1}));  // the longest skip
  EXPECT_EQ(make_chunks(graph, std::vector<int>(graph.nodes().size(), 0)).size(), 1u);
}

/// A U-Net folded in the middle: a level of the encoder and its mirror in the decoder share a
/// stage, so a stage runs twice.
TEST(Chunks, AFoldedNetworkHasTwoPerStageButTheLast) {
  const Graph graph = build_model("unet2d:base=2,depth=4", {1, 3, 16, 16});
  for (int stages : {2, 3, 4}) {
    std::vector<int> fold;
    for (int stage = 0; stage < stages; ++stage) fold.push_back(stage);
    for (int stage = stages - 2; stage >= 0; --stage) fold.push_back(stage);
    const std::vector<Chunk> chunks = make_chunks(graph, in_parts(graph, fold));
    EXPECT_EQ(stages_of(chunks), fold);
  }
}

/// Nodes of one stage that do not wait for another stage run together, wherever they stand.
TEST(Chunks, BranchesOfOneStageRunTogether) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  for (const char* name : {"a", "b", "c", "d"}) relu(graph, x, name);
  const std::vector<Chunk> chunks = make_chunks(graph, {1, 0, 1, 0});
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].stage, 1);
  EXPECT_EQ(chunks[0].nodes, (std::vector<NodeId>{0, 2}));
  EXPECT_EQ(chunks[1].nodes, (std::vector<NodeId>{1, 3}));
  // Both read the image: the first that does has it, and gives it to the other.
  EXPECT_EQ(chunks[0].chunks_before, (std::vector<int>{}));
  EXPECT_EQ(chunks[1].chunks_before, (std::vector<int>{0}));
}

void expect_runs(const Graph& graph, const std::vector<int>& stage_of_node,
                 const std::vector<Chunk>& chunks) {
  std::vector<int> chunk_of(graph.nodes().size(), -1);
  for (size_t c = 0; c < chunks.size(); ++c) {
    EXPECT_FALSE(chunks[c].nodes.empty());
    EXPECT_TRUE(std::is_sorted(chunks[c].nodes.begin(), chunks[c].nodes.end()));
    for (NodeId id : chunks[c].nodes) {
      ASSERT_EQ(chunk_of[id], -1) << graph.node(id).name << " is there twice";
      EXPECT_EQ(stage_of_node[id], chunks[c].stage);
      for (ValueId input : graph.node(id).inputs) {
        const NodeId producer = graph.value(input).producer;
        ASSERT_TRUE(producer < 0 || chunk_of[producer] >= 0) << graph.node(id).name;
      }
      chunk_of[id] = static_cast<int>(c);
    }
  }
  EXPECT_EQ(std::count(chunk_of.begin(), chunk_of.end(), -1), 0) << "a node is left out";
  std::vector<std::set<int>> before(chunks.size());
  for (const Value& value : graph.values()) {
    int owner = value.producer >= 0 ? chunk_of[value.producer] : static_cast<int>(chunks.size());
    if (value.producer < 0)
      for (const Use& use : value.uses) owner = std::min(owner, chunk_of[use.node]);
    for (const Use& use : value.uses)
      if (chunk_of[use.node] != owner) before[chunk_of[use.node]].insert(owner);
  }
  for (size_t c = 0; c < chunks.size(); ++c) {
    EXPECT_EQ(chunks[c].chunks_before, std::vector<int>(before[c].begin(), before[c].end()));
    EXPECT_TRUE(before[c].empty() || *before[c].rbegin() < static_cast<int>(c));
  }
}

TEST(Chunks, AnyAssignmentGivesPartsThatRunInTheirOrder) {
  for (const char* model :
       {"unet2d:base=2,depth=3", "resnet18:width=2", "attention_unet2d:base=2,depth=3"}) {
    const Graph graph = build_model(model, {1, 3, 64, 64});
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", model, seed));
      std::mt19937_64 random(seed);
      std::vector<int> stages;
      for (NodeId id = 0; id < num_nodes(graph); ++id)
        stages.push_back(static_cast<int>(random() % 4));
      expect_runs(graph, stages, make_chunks(graph, stages));
    }
  }
}

// ---- Stages by name -----------------------------------------------------------------------------

TEST(StagesOfNodes, EveryNodeNeedsOne) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  relu(graph, relu(graph, x, "first"), "second");
  Plan plan;
  plan.stages = {{}, {}};
  plan.stage_of = {{"first", 1}, {"second", 0}};
  EXPECT_EQ(stages_of_nodes(graph, plan), (std::vector<int>{1, 0}));
  for (int stage : {-1, 2}) {
    plan.stage_of["second"] = stage;
    expect_refusal([&] { stages_of_nodes(graph, plan); },
                   fmt::format("node second on stage {}; there are stages 0 to 1", stage));
  }
  plan.stage_of.erase("second");
  expect_refusal([&] { stages_of_nodes(graph, plan); }, "which stage node second belongs to");
  EXPECT_EQ(stages_of_nodes(graph, Plan{}), (std::vector<int>{0, 0}));  // one stage needs no names
}

TEST(StagesOfNodes, WhatTheLoweringMadeStaysWithWhatItWasMadeFrom) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({1, 2, 8, 8}));
  spatial_reduction(graph, relu(graph, x, "relu"), "pool", {});
  Plan plan;
  plan.stages = {{}, {2, 2}};
  plan.stage_of = {{"relu", 0}, {"pool", 1}};
  const Graph rewritten = rewrite(graph, plan);
  ASSERT_EQ(rewritten.node(1).name, "pool.partial");
  EXPECT_EQ(stages_of_nodes(rewritten, plan), (std::vector<int>{0, 1, 1}));
  plan.stage_of["pool.partial"] = 0;  // a node of that very name comes first
  EXPECT_EQ(stages_of_nodes(rewritten, plan), (std::vector<int>{0, 0, 1}));
}

// ---- What is early ------------------------------------------------------------------------------

/// Logits at two sizes, and labels for both: those of the small ones are resized.
struct TwoOutputs {
  TwoOutputs() {
    image = graph.add_input("image", ValueType::image({4, 2, 8, 8}));
    logits = convolution(graph, image, "head", {3, {1}});
    coarse = convolution(graph, image, "coarse", {3, {2}, {2}});
    labels = add_target(graph, logits, "labels");
  }
  std::vector<bool> only(std::vector<ValueId> values) const {
    std::vector<bool> flags(graph.values().size(), false);
    for (ValueId value : values) flags[value] = true;
    return flags;
  }
  NodeId node(const std::string& name) const {
    for (NodeId id = 0; id < num_nodes(graph); ++id)
      if (graph.node(id).name == name) return id;
    ADD_FAILURE() << "no node " << name;
    return 0;
  }

  Graph graph;
  ValueId image, logits, coarse, labels;
};

TEST(Early, LabelsAndWhatIsMadeOfThemAlone) {
  TwoOutputs net;
  const ValueId small = resize_labels(net.graph, net.labels, "resize", {4, 4});
  cross_entropy(net.graph, net.logits, net.labels, "loss");
  cross_entropy(net.graph, net.coarse, small, "coarse_loss");
  const EarlyPart early = find_early_part(net.graph, 2);
  EXPECT_EQ(early.late_loss, -1);
  EXPECT_EQ(early.values, net.only({net.labels, small}));
  for (NodeId id = 0; id < num_nodes(net.graph); ++id) {
    const std::string& name = net.graph.node(id).name;
    EXPECT_EQ(early.nodes[id], name == "resize") << name;
    EXPECT_EQ(early.losses[id], name == "loss" || name == "coarse_loss") << name;
  }
}

TEST(Early, DiceWaitsForPredictions) {
  TwoOutputs net;
  dice(net.graph, net.logits, net.labels, "dice");
  const EarlyPart alone = find_early_part(net.graph, 2);
  EXPECT_EQ(alone.late_loss, net.node("dice"));
  EXPECT_EQ(alone.values, net.only({}));
  cross_entropy(net.graph, net.logits, net.labels, "loss");
  const EarlyPart both = find_early_part(net.graph, 2);
  EXPECT_EQ(both.late_loss, net.node("dice"));
  EXPECT_FALSE(both.losses[net.node("dice")]);
  EXPECT_TRUE(both.losses[net.node("loss")]);
  EXPECT_EQ(both.values, net.only({net.labels}));
}

TEST(Early, NothingWhereNothingNeedsIt) {
  TwoOutputs net;
  cross_entropy(net.graph, net.logits, net.labels, "loss");
  dice(net.graph, net.logits, net.labels, "dice");
  const EarlyPart one_micro_batch = find_early_part(net.graph, 1);
  EXPECT_EQ(one_micro_batch.values, net.only({}));
  EXPECT_EQ(one_micro_batch.late_loss, -1);

  // A mean over all pixels has no denominator to wait for.
  TwoOutputs numbers;
  mean_squared_error(numbers.graph, numbers.logits,
                     add_real_target(numbers.graph, numbers.logits, "target"), "loss");
  const EarlyPart early = find_early_part(numbers.graph, 4);
  EXPECT_EQ(early.values, numbers.only({}));
  EXPECT_EQ(early.late_loss, -1);
}

}  // namespace
}  // namespace tessera::chunks_test
