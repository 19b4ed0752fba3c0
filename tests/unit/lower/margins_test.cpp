// Halos without copies, read off the program.

#include <gtest/gtest.h>

#include <map>

#include "tessera/lower/lower.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pool/pooling.h"

namespace tessera::margins_test {
namespace {

template <class T>
std::vector<T> all_of(const Program& program) {
  std::vector<T> found;
  for (const Instruction& instruction : program.instructions)
    if (const T* match = std::get_if<T>(&instruction)) found.push_back(*match);
  return found;
}

/// Without those of statistics, which are rows of their own kind.
std::vector<StartTransfer> value_transfers(const Program& program) {
  std::vector<StartTransfer> found = all_of<StartTransfer>(program);
  std::erase_if(found, [&](const StartTransfer& start) {
    const Message& any = start.sends.empty() ? start.receives[0] : start.sends[0];
    return program.buffers[any.strip].kind == BufferKind::kStatistics;
  });
  return found;
}

void add_pixel_loss(Graph& graph, ValueId x) {
  const ValueId logits = convolution(graph, x, "head", {3, {1}});
  graph.mark_output(logits);
  cross_entropy(graph, logits, add_target(graph, logits, "target"), "loss");
}

Graph conv_norm_relu_chain() {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  for (const char* name : {"a", "b", "c"}) {
    x = convolution(graph, x, name, {4, {3}, {1}, {1}, {1}});
    x = batch_norm(graph, x, std::string(name) + ".norm");
    x = relu(graph, x, std::string(name) + ".relu");
  }
  add_pixel_loss(graph, x);
  return graph;
}

TEST(Margins, ConvNormReluChainsCopyNothingForTheirHalos) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 2}, {}});
  for (const Program& program : lowered.programs) {
    EXPECT_TRUE(all_of<Copy>(program).empty());
    // The norms write into the interiors of the buffers that the convolutions read, part by part.
    std::map<BufferId, Box> written;
    for (const tessera::Run& run : all_of<tessera::Run>(program)) {
      if (run.phase != Phase::kForward ||
          lowered.graph.node(run.node).op->kind() != "batch_norm_relu")
        continue;
      for (const Argument& argument : run.arguments)
        if (argument.role == Role::kOutput) {
          const auto [found, is_new] = written.try_emplace(argument.view.buffer, argument.view.box);
          found->second = hull(found->second, argument.view.box);
        }
    }
    int interiors = 0;
    for (const auto& [buffer, box] : written) {
      EXPECT_TRUE(program.buffers[buffer].box.contains(box));
      interiors += !(program.buffers[buffer].box == box);
    }
    EXPECT_EQ(written.size(), 3u);
    EXPECT_EQ(interiors, 2);  // the third norm feeds a 1x1 convolution, which has no margins
  }
}

TEST(Margins, OnlyTheHaloCrossesRanks) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 1}, {}});
  const std::vector<StartTransfer> starts = value_transfers(lowered.programs[0]);
  // Three 3x3 convolutions: three exchanges forward; backward two, since nobody asked for the
  // image's gradient.
  ASSERT_EQ(starts.size(), 5u);
  const std::vector<int64_t> rows{3 * 32, 4 * 32, 4 * 32, 4 * 32, 4 * 32};
  for (size_t i = 0; i < starts.size(); ++i) {
    ASSERT_EQ(starts[i].sends.size(), 1u);
    EXPECT_EQ(lowered.programs[0].buffers[starts[i].sends[0].strip].box.volume(), rows[i]);
  }
}

TEST(Margins, RecomputationUnpacksTheFirstExchangeAgain) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 1}, {}});
  const Program& program = lowered.programs[0];
  int recomputed = 0;
  for (const tessera::Run& run : all_of<tessera::Run>(program))
    recomputed += run.phase == Phase::kRecompute;
  EXPECT_EQ(recomputed, 3);
  // Forward unpacks 3 exchanges, recomputation 2 of them again, backward 2 of gradients.
  EXPECT_EQ(all_of<Unpack>(program).size(), 7u);
}

/// Nothing that other ranks have computed is added, and nobody computes what others own.
TEST(Margins, GradientsTravelAsHalosAndAreComputedByTheirOwners) {
  const Lowered lowered = lower(conv_norm_relu_chain(), {1, {2, 2}, {}});
  for (const Program& program : lowered.programs) {
    SCOPED_TRACE(program.rank);
    for (const Unpack& unpack : all_of<Unpack>(program)) EXPECT_EQ(unpack.combine, Combine::kStore);
    int with_halo = 0;
    for (const tessera::Run& run : all_of<tessera::Run>(program)) {
      const std::string& name = lowered.graph.node(run.node).name;
      if (run.phase != Phase::kInputGradient || (name != "b" && name != "c")) continue;
      for (const Argument& argument : run.arguments) {
        if (argument.role == Role::kGradInput) {
          EXPECT_EQ(argument.view.box.volume(), 4 * 16 * 16) << name;
        }
        if (argument.role != Role::kGradOutput) continue;
        EXPECT_EQ(argument.view.box.volume(), 4 * 17 * 17) << name;
        EXPECT_EQ(argument.view.box, program.buffers[argument.view.buffer].box) << name;
        ++with_halo;
      }
    }
    EXPECT_EQ(with_halo, 2);
  }
}

/// Where they are added to something else first, the halo gets a buffer of its own.
TEST(Margins, AGradientThatLiesElsewhereIsOneCountedCopy) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  x = convolution(graph, x, "stem", {4, {1}});
  x = convolution(graph, x, "a", {4, {3}, {1}, {1}, {1}});
  add_pixel_loss(graph, x);  // a 1x1 convolution, whose own buffer is the home
  const Lowered lowered = lower(graph, {1, {2, 1}, {}});
  int copies = 0;
  for (const Copy& copy : all_of<Copy>(lowered.programs[0])) {
    EXPECT_EQ(lowered.programs[0].buffers[copy.to.buffer].name, "a gradient with halo");
    ++copies;
  }
  EXPECT_EQ(copies, 1);
}

/// Between two stages the owners of the input do not run the convolution: what it gives its input
/// is sent to them.
TEST(Margins, AcrossStagesGradientsGoBackByTheAdjoint) {
  Plan plan;
  plan.stages = {{2, 1}, {1, 2}};
  const Graph graph = conv_norm_relu_chain();
  for (const Node& node : graph.nodes()) plan.stage_of[node.name] = node.name[0] == 'a' ? 0 : 1;
  const Lowered lowered = lower(graph, plan);
  for (int rank : {0, 1}) {
    int added = 0;
    for (const Unpack& unpack : all_of<Unpack>(lowered.programs[rank]))
      added += unpack.combine == Combine::kAdd;
    EXPECT_EQ(added, 1) << rank;
  }
}

TEST(Margins, ConsumersOfOneWindowShareTheBufferAndTheExchange) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  x = relu(graph, convolution(graph, x, "stem", {4, {1}}), "relu");
  const ValueId a = convolution(graph, x, "a", {4, {3}, {1}, {1}, {1}});
  const ValueId b = convolution(graph, x, "b", {4, {3}, {1}, {1}, {1}});
  const ValueId pooled = max_pool(graph, x, "pool", {{3}, {1}, {1}});
  for (ValueId value : {a, b, pooled}) add_pixel_loss(graph, value);
  const Lowered lowered = lower(graph, {1, {2, 1}, {}});
  const Program& program = lowered.programs[0];
  // One forward; one of each convolution's gradient, and one adjoint of the pool's.
  EXPECT_EQ(value_transfers(program).size(), 4u);
  for (const Copy& copy : all_of<Copy>(program))
    if (copy.combine == Combine::kStore) {
      EXPECT_TRUE(program.buffers[copy.to.buffer].name.ends_with("gradient with halo"));
    }
}

TEST(Margins, AnotherWindowIsOneCountedCopy) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 32, 32}));
  x = relu(graph, convolution(graph, x, "stem", {4, {1}}), "relu");
  add_pixel_loss(graph, convolution(graph, x, "a", {4, {3}, {1}, {1}, {1}}));
  add_pixel_loss(graph, convolution(graph, x, "b", {4, {3}, {1}, {2}, {2}}));
  const Lowered lowered = lower(graph, {1, {2, 1}, {}});
  int copies = 0;
  for (const Copy& copy : all_of<Copy>(lowered.programs[0]))
    copies += copy.combine == Combine::kStore &&
              lowered.programs[0].buffers[copy.to.buffer].kind == BufferKind::kValue;
  EXPECT_EQ(copies, 1);
}

TEST(Margins, AlignedPoolsExchangeNothing) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({1, 3, 40, 40}));
  for (const char* name : {"a", "b", "c"}) x = max_pool(graph, x, name, {{2}});
  add_pixel_loss(graph, x);
  const Lowered lowered = lower(graph, {1, {2, 2}, {}});
  for (const Program& program : lowered.programs) EXPECT_TRUE(value_transfers(program).empty());
}

}  // namespace
}  // namespace tessera::margins_test
