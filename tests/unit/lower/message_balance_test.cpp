// What the ranks of a large world compare instead of proving all programs together.

#include "tessera/lower/message_balance.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tessera/lower/lower.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/zoo/zoo.h"

namespace tessera::message_balance_test {
namespace {

uint64_t sum_of_balances(const std::vector<Program>& programs) {
  uint64_t sum = 0;
  for (const Program& program : programs) sum += message_balance(program);
  return sum;
}

std::vector<Program> on_a_grid() {
  return lower(build_model("cnn2d:base=2,depth=2", {2, 3, 16, 16}), {2, {2, 2}, {}},
               {.step = StepKind::kTrain})
      .programs;
}

StartTransfer& nth_start(Program& program, int n) {
  for (Instruction& instruction : program.instructions)
    if (auto* start = std::get_if<StartTransfer>(&instruction); start && n-- == 0) return *start;
  throw std::logic_error("no such transfer");
}

TEST(MessageBalance, OfProgramsThatFitIsZero) {
  EXPECT_EQ(sum_of_balances(on_a_grid()), 0u);
  const Graph graph = with_micro_batch_norm(build_model("unet2d:base=2,depth=2", {4, 3, 8, 8}), 4);
  Plan plan;
  plan.stages = {{1, 2}, {2, 1}};
  plan.micro_batches = 4;
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    plan.stage_of[graph.nodes()[id].name] = id < graph.nodes().size() / 2 ? 0 : 1;
  for (const ScheduleKind kind :
       {ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZeroBubble, ScheduleKind::kGpipe}) {
    plan.schedule = kind;
    EXPECT_EQ(sum_of_balances(lower(graph, plan).programs), 0u);
  }
}

TEST(MessageBalance, OfAnotherOrderIsNot) {
  std::vector<Program> programs = on_a_grid();
  std::swap(nth_start(programs[3], 0).channel, nth_start(programs[3], 1).channel);
  EXPECT_NE(sum_of_balances(programs), 0u);
}

TEST(MessageBalance, OfAnotherSizeIsNot) {
  std::vector<Program> programs = on_a_grid();
  Message& message = nth_start(programs[1], 0).sends[0];
  programs[1].buffers[message.strip].box = Box{{0, 12345}};
  EXPECT_NE(sum_of_balances(programs), 0u);
}

TEST(MessageBalance, OfAMissingMessageIsNot) {
  std::vector<Program> programs = on_a_grid();
  nth_start(programs[2], 1).receives.pop_back();
  EXPECT_NE(sum_of_balances(programs), 0u);
}

TEST(MessageBalance, OfAMessageToAnotherRankIsNot) {
  std::vector<Program> programs = on_a_grid();
  Message& message = nth_start(programs[0], 0).sends[0];
  message.peer = message.peer == 7 ? 6 : 7;
  EXPECT_NE(sum_of_balances(programs), 0u);
}

}  // namespace
}  // namespace tessera::message_balance_test
