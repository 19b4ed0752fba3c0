// What the stages of a pipeline hold and send, read off their programs: parameters where they are
// used, skips straight to their readers, no copies at the borders.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tessera/base/error.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/dice.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/planner/domains.h"
#include "tessera/zoo/zoo.h"

namespace tessera::stage_programs_test {
namespace {

using enum ScheduleKind;
using Grids = std::vector<std::vector<int64_t>>;

template <class T>
std::vector<T> all_of(const Program& program) {
  std::vector<T> found;
  for (const Instruction& instruction : program.instructions)
    if (const T* match = std::get_if<T>(&instruction)) found.push_back(*match);
  return found;
}

/// Consecutive parts of the node order, of about the same size.
Plan plan_in_parts(const Graph& graph, const Grids& grids, const std::vector<int>& stage_of_part,
                   int64_t micro_batches = 1, ScheduleKind schedule = kOneForwardOneBackward) {
  Plan plan;
  plan.stages = grids;
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  const int64_t num_nodes = std::ssize(graph.nodes());
  for (int64_t id = 0; id < num_nodes; ++id)
    plan.stage_of[graph.nodes()[id].name] =
        stage_of_part[id * std::ssize(stage_of_part) / num_nodes];
  return plan;
}

Graph small_unet() {
  return with_micro_batch_norm(build_model("unet2d:base=2,depth=3", {4, 3, 16, 16}), 2);
}

// ---- Parameters ---------------------------------------------------------------------------------

/// For every rank, the parameters of the nodes of its stage.
std::vector<std::set<ParameterId>> expected_parameters(const Graph& graph, const Plan& plan) {
  std::vector<std::set<ParameterId>> of_rank(plan.num_ranks());
  for (const Node& node : graph.nodes())
    for (int64_t m = 0; m < plan.micro_batches; ++m)
      for (int rank : plan.stage_ranks(plan.place_of_stage(plan.stage_of.at(node.name), m))) {
        of_rank[rank].insert(node.parameters.begin(), node.parameters.end());
        of_rank[rank].insert(node.buffers.begin(), node.buffers.end());
      }
  return of_rank;
}

void expect_parameters_where_used(const Graph& graph, const Plan& plan) {
  SCOPED_TRACE(to_string(plan));
  const Lowered lowered = lower(graph, plan);
  const std::vector<std::set<ParameterId>> expected = expected_parameters(graph, plan);
  std::vector<Members> holders(graph.parameters().size());
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    EXPECT_EQ(lowered.programs[rank].parameters,
              std::vector<ParameterId>(expected[rank].begin(), expected[rank].end()))
        << "rank " << rank;
    for (ParameterId id : expected[rank]) holders[id].push_back(rank);
  }
  EXPECT_EQ(lowered.holders, holders);
}

TEST(StagePrograms, HoldTheParametersOfTheirNodes) {
  const Graph graph = small_unet();
  const Grids three(3);
  expect_parameters_where_used(graph, plan_in_parts(graph, three, {0, 1, 2}, 2));
  expect_parameters_where_used(graph, plan_in_parts(graph, three, {0, 1, 2, 1, 0}, 2));
  expect_parameters_where_used(graph, plan_in_parts(graph, three, {0, 1, 2}, 2, kGems));
  Plan plan = plan_in_parts(graph, {{2, 1}, {}, {1, 3}}, {2, 0, 1}, 2, kZeroBubble);
  plan.data = 2;
  expect_parameters_where_used(graph, plan);
}

/// Stages 0 and 2 of three use one weight; stage 1 has its own.
struct Tied {
  Tied() {
    ValueId x = graph.add_input("image", ValueType::image({2, 3, 8, 8}));
    for (const char* name : {"shared", "own", "shared"})
      x = convolution(graph, x, name, {3, {3}, {1}, {1}, {1}});
    cross_entropy(graph, x, add_target(graph, x, "target"), "loss");
    plan = plan_in_parts(graph, Grids(3), {0, 1, 2, 2});
    weight = graph.node(0).parameters[0];
  }
  Graph graph;
  Plan plan;
  ParameterId weight;
};

TEST(StagePrograms, TiedParametersAreOnAllStagesThatUseThem) {
  const Tied tied;
  ASSERT_EQ(tied.graph.node(2).parameters[0], tied.weight);
  expect_parameters_where_used(tied.graph, tied.plan);
  EXPECT_EQ(lower(tied.graph, tied.plan).holders[tied.weight], (Members{0, 2}));
}

std::set<Members> reduced_over(const Program& program) {
  std::set<Members> members;
  for (const StartReduce& reduce : all_of<StartReduce>(program))
    if (reduce.buffer != program.loss) members.insert(reduce.members);
  return members;
}

TEST(StagePrograms, ReduceGradientsOverTheirHoldersAlone) {
  const Tied tied;
  const Lowered lowered = lower(tied.graph, tied.plan);
  EXPECT_EQ(reduced_over(lowered.programs[0]), (std::set<Members>{{0, 2}}));
  EXPECT_EQ(reduced_over(lowered.programs[1]), (std::set<Members>{}));  // nobody else has it
  EXPECT_EQ(reduced_over(lowered.programs[2]), (std::set<Members>{{0, 2}}));

  const Graph graph = small_unet();
  Plan plan = plan_in_parts(graph, {{2, 1}, {}, {1, 3}}, {0, 1, 2}, 2);
  plan.data = 2;
  const Lowered replicas = lower(graph, plan);
  for (int stage = 0; stage < 3; ++stage)
    for (int rank : plan.stage_ranks(stage)) {
      const Program& program = replicas.programs[rank];
      EXPECT_EQ(reduced_over(program), (std::set<Members>{plan.stage_ranks(stage)}));
      for (const Bucket& bucket : program.buckets)
        EXPECT_EQ(bucket.holders, plan.stage_ranks(stage));
    }
}

/// Workers of different domains run no kernel together: who waited for the others in the middle of
/// backward would wait for all of theirs.
TEST(StagePrograms, SumsOfDomainsWaitForTheEndOfBackward) {
  const Graph graph = build_model("dsn:base=2,code=4,classes=3,targets=2", {2, 1, 16, 16});
  Plan plan;
  plan.stages.resize(3);
  plan.stage_of = stages_by_domains(graph, plan, group_by_domains(graph, 1));
  for (const Program& program : lower(graph, plan).programs) {
    size_t last_kernel = 0, first_sum = program.instructions.size();
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      if (std::holds_alternative<tessera::Run>(program.instructions[i])) last_kernel = i;
      const auto* start = std::get_if<StartReduce>(&program.instructions[i]);
      if (start && start->buffer != program.loss) first_sum = std::min(first_sum, i);
    }
    EXPECT_LT(last_kernel, first_sum);
    EXPECT_LT(first_sum, program.instructions.size());
  }
}

TEST(StagePrograms, EveryRankLearnsTheLoss) {
  const Tied tied;
  for (const Program& program : lower(tied.graph, tied.plan).programs) {
    int losses = 0;
    for (const StartReduce& reduce : all_of<StartReduce>(program)) {
      if (reduce.buffer != program.loss) continue;
      ++losses;
      EXPECT_EQ(reduce.members, (Members{0, 1, 2}));
    }
    EXPECT_EQ(losses, 1);
  }
}

// ---- Values between stages ----------------------------------------------------------------------

using Traffic = std::map<std::pair<int, int>, int64_t>;  // from, to -> elements

Traffic sent(const Lowered& lowered) {
  Traffic traffic;
  for (const Program& program : lowered.programs)
    for (const StartTransfer& start : all_of<StartTransfer>(program))
      for (const Message& message : start.sends)
        traffic[{program.rank, message.peer}] += program.buffers[message.strip].box.volume();
  return traffic;
}

/// Every value once to each stage that reads it, and its gradient back, for stages of one rank.
Traffic straight_ways(const Graph& graph, const Plan& plan) {
  Traffic traffic;
  for (const Value& value : graph.values()) {
    if (value.producer < 0) continue;
    const int from = plan.stage_of.at(graph.node(value.producer).name);
    std::set<int> readers;
    for (const Use& use : value.uses) readers.insert(plan.stage_of.at(graph.node(use.node).name));
    readers.erase(from);
    for (int to : readers)
      for (const auto& way : {std::pair{from, to}, std::pair{to, from}})
        traffic[way] += Box::whole(value.type.shape()).volume();
  }
  return traffic;
}

bool is_of(const Program& program, const Message& message, const std::string& value) {
  const std::string& name = program.buffers[message.strip].name;
  return name == value || name.starts_with(value + " ");
}

/// Peers of a rank in the transfers of a value and of its gradient.
std::set<int> peers_for(const Program& program, const std::string& value) {
  std::set<int> peers;
  for (const StartTransfer& start : all_of<StartTransfer>(program))
    for (const auto* messages : {&start.sends, &start.receives})
      for (const Message& message : *messages)
        if (is_of(program, message, value)) peers.insert(message.peer);
  return peers;
}

TEST(StagePrograms, LongSkipsGoStraightToTheirReaders) {
  const Graph graph = build_model("unet2d:base=2,depth=3,norm=none", {4, 3, 16, 16});
  for (ScheduleKind schedule : {kGpipe, kOneForwardOneBackward, kZeroBubble}) {
    const Plan plan = plan_in_parts(graph, Grids(3), {0, 1, 2}, 4, schedule);
    const Lowered lowered = lower(graph, plan);
    EXPECT_EQ(sent(lowered), straight_ways(graph, plan)) << to_string(schedule);
    int long_skips = 0;
    for (const Value& value : graph.values()) {
      if (value.producer < 0 || plan.stage_of.at(graph.node(value.producer).name) != 0) continue;
      std::set<int> readers;
      for (const Use& use : value.uses) readers.insert(plan.stage_of.at(graph.node(use.node).name));
      if (readers.contains(1) || !readers.contains(2)) continue;
      ++long_skips;
      EXPECT_EQ(peers_for(lowered.programs[0], value.name), (std::set<int>{2})) << value.name;
      EXPECT_EQ(peers_for(lowered.programs[1], value.name), (std::set<int>{})) << value.name;
      EXPECT_EQ(peers_for(lowered.programs[2], value.name), (std::set<int>{0})) << value.name;
    }
    EXPECT_GE(long_skips, 1);
  }
  const Plan fold = plan_in_parts(graph, Grids(3), {0, 1, 2, 1, 0}, 2);
  EXPECT_EQ(sent(lower(graph, fold)), straight_ways(graph, fold));
}

/// Stage 2 reads without margins, stage 1 with.
Graph chain_over_three_stages() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({2, 3, 16, 16}));
  x = relu(graph, convolution(graph, x, "a", {4, {3}, {1}, {1}, {1}}), "a.relu");
  x = relu(graph, convolution(graph, x, "b", {4, {3}, {1}, {1}, {1}}), "b.relu");
  x = convolution(graph, x, "head", {3, {1}});
  cross_entropy(graph, x, add_target(graph, x, "target"), "loss");
  return graph;
}

/// What a rank gets, and in which buffers its kernels read it.
std::set<BufferId> received(const Program& program) {
  std::set<BufferId> strips;
  for (const StartTransfer& start : all_of<StartTransfer>(program))
    for (const Message& message : start.receives) strips.insert(message.strip);
  return strips;
}

int num_read(const Program& program, Phase phase, Role role, const std::set<BufferId>& buffers) {
  int count = 0;
  for (const tessera::Run& run : all_of<tessera::Run>(program))
    for (const Argument& argument : run.arguments)
      count +=
          run.phase == phase && argument.role == role && buffers.contains(argument.view.buffer);
  return count;
}

TEST(StagePrograms, CopyNothingAtTheirBorders) {
  const Lowered lowered = lower(
      chain_over_three_stages(),
      plan_in_parts(chain_over_three_stages(), Grids(3), {0, 0, 1, 1, 2, 2}, /*micro_batches=*/2));
  const std::vector<Program>& ranks = lowered.programs;
  for (const Program& program : ranks) EXPECT_TRUE(all_of<Copy>(program).empty());

  // What is sent is the buffer that the kernel wrote, not a strip packed from it.
  for (const StartTransfer& start : all_of<StartTransfer>(ranks[0]))
    for (const Message& message : start.sends)
      EXPECT_EQ(ranks[0].buffers[message.strip].kind, BufferKind::kValue);
  for (const StartTransfer& start : all_of<StartTransfer>(ranks[2]))
    for (const Message& message : start.sends)
      EXPECT_EQ(ranks[2].buffers[message.strip].kind, BufferKind::kGradient);

  // What was received is the buffer that the kernel reads, of both micro-batches: gradients on
  // ranks 0 and 1, the value without margins on rank 2.
  EXPECT_EQ(num_read(ranks[2], Phase::kForward, Role::kInput, received(ranks[2])), 2);
  for (int rank : {0, 1})
    EXPECT_EQ(
        num_read(ranks[rank], Phase::kInputGradient, Role::kGradOutput, received(ranks[rank])), 2);
  EXPECT_TRUE(all_of<Unpack>(ranks[0]).empty());
  EXPECT_TRUE(all_of<Unpack>(ranks[2]).empty());
  // Only a convolution with padding needs more around it than what came.
  EXPECT_EQ(all_of<Unpack>(ranks[1]).size(), 2u);
}

// ---- What micro-batches cannot do ---------------------------------------------------------------

void expect_refused(const std::function<void()>& call, const std::vector<std::string>& parts) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << parts[0];
  } catch (const InvalidInput& error) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(MicroBatches, DiceNeedsAllForwardsFirst) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({2, 3, 8, 8}));
  const ValueId logits = convolution(graph, x, "conv", {3, {1}});
  dice(graph, logits, add_target(graph, logits, "target"), "overlap");
  for (const Grids& grids : {Grids(), Grids(2)}) {
    for (ScheduleKind schedule : {kSequential, kOneForwardOneBackward, kZeroBubble, kGems}) {
      const Plan plan = plan_in_parts(graph, grids, {0, 1}, 2, schedule);
      expect_refused([&] { lower(graph, plan); }, {"[overlap]", to_string(schedule), "gpipe"});
      EXPECT_NO_THROW(lower(graph, plan, {.step = StepKind::kForward}));
      EXPECT_NO_THROW(lower(graph, plan_in_parts(graph, grids, {0, 1}, 1, schedule)));
    }
    EXPECT_NO_THROW(lower(graph, plan_in_parts(graph, grids, {0, 1}, 2, kGpipe)));
  }
}

TEST(MicroBatches, BatchNormMustBeAskedFor) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({6, 3, 8, 8}));
  batch_norm(graph, x, "norm");
  const ValueId logits = convolution(graph, graph.node(0).output, "conv", {3, {1}});
  cross_entropy(graph, logits, add_target(graph, logits, "target"), "loss");
  const auto plan = [&](int64_t micro_batches) {
    return plan_in_parts(graph, Grids(2), {0, 1}, micro_batches);
  };
  EXPECT_NO_THROW(lower(graph, plan(1)));
  expect_refused([&] { lower(graph, plan(2)); },
                 {"[norm]", "the whole batch", "2 micro-batches", "--norm micro-batch"});
  EXPECT_NO_THROW(lower(with_micro_batch_norm(graph, 2), plan(2)));
  for (int64_t other : {1, 3})
    expect_refused([&] { lower(with_micro_batch_norm(graph, 2), plan(other)); },
                   {"2 parts of the batch", fmt::format("{} micro-batches", other)});
}

/// By running statistics no sample knows of another.
TEST(MicroBatches, RunningStatisticsNeedNoQuestion) {
  Graph graph;
  const ValueId x = graph.add_input("image", ValueType::image({2, 3, 8, 8}));
  const ValueId y =
      batch_norm(graph, x, "norm", {.statistics = BatchNormOptions::Statistics::kRunning});
  cross_entropy(graph, y, add_target(graph, y, "target"), "loss");
  EXPECT_NO_THROW(lower(graph, plan_in_parts(graph, Grids(2), {0, 1}, 2)));
  const Graph same = with_micro_batch_norm(graph, 2);
  EXPECT_EQ(same.node(0).op->batch_parts(), 0);
}

}  // namespace
}  // namespace tessera::stage_programs_test
