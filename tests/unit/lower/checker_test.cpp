// The checker notices what would hang, cross or read freed memory.

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/lower/checker.h"
#include "tessera/lower/lower.h"
#include "tessera/zoo/zoo.h"

namespace tessera::checker_test {
namespace {

class Checker : public testing::Test {
 protected:
  void SetUp() override {
    programs_ =
        lower(build_model("cnn2d:base=2,depth=2", {2, 3, 16, 16}), {1, {2, 2}, {}}).programs;
  }
  /// The place of the n-th instruction of a kind.
  template <class T>
  size_t find(const Program& program, int n = 0) const {
    for (size_t i = 0; i < program.instructions.size(); ++i)
      if (std::holds_alternative<T>(program.instructions[i]) && n-- == 0) return i;
    ADD_FAILURE() << "no such instruction";
    return 0;
  }
  void erase(Program& program, size_t at) {
    program.instructions.erase(program.instructions.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void expect_refused(const std::string& part) {
    try {
      check_programs(programs_);
      ADD_FAILURE() << "passed";
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  std::vector<Program> programs_;
};

TEST_F(Checker, PassesWhatLoweringMakes) { check_programs(programs_); }

TEST_F(Checker, SeesABufferFreedTooEarly) {
  Program& program = programs_[1];
  const size_t at = find<Free>(program);
  const Instruction free = program.instructions[at];
  erase(program, at);
  program.instructions.insert(
      program.instructions.begin() + static_cast<std::ptrdiff_t>(find<Alloc>(program, 1)), free);
  expect_refused("rank 1");
}

TEST_F(Checker, SeesALeak) {
  erase(programs_[0], find<Free>(programs_[0]));
  expect_refused("left over");
}

TEST_F(Checker, SeesAWriteToWhatIsBeingSent) {
  const size_t at = find<StartTransfer>(programs_[0]);
  const auto& start = std::get<StartTransfer>(programs_[0].instructions[at]);
  const BufferId strip = start.sends[0].strip;
  const Fill fill{strip, {programs_[0].buffers[strip].box}};
  programs_[0].instructions.insert(programs_[0].instructions.begin() + at + 1, fill);
  expect_refused("written while it is being sent");
}

TEST_F(Checker, SeesAUseOfWhatIsBeingReceived) {
  const size_t at = find<StartTransfer>(programs_[0]);
  const auto& start = std::get<StartTransfer>(programs_[0].instructions[at]);
  const BufferId strip = start.receives[0].strip, other = start.sends[0].strip;
  const Copy copy{
      {strip, programs_[0].buffers[strip].box}, {other, programs_[0].buffers[other].box}, {}};
  programs_[0].instructions.insert(programs_[0].instructions.begin() + at + 1, copy);
  expect_refused("used while it is being received");
}

TEST_F(Checker, SeesAMissingFinish) {
  erase(programs_[2], find<FinishReduce>(programs_[2]));
  expect_refused("never finished");
}

TEST_F(Checker, SeesAStripThatGoesBeforeItsTransferEnds) {
  erase(programs_[2], find<FinishTransfer>(programs_[2]));
  expect_refused("freed in the middle of a transfer");
}

TEST_F(Checker, SeesAMessageThatNobodyReceives) {
  auto& start =
      std::get<StartTransfer>(programs_[0].instructions[find<StartTransfer>(programs_[0])]);
  start.receives.pop_back();
  expect_refused("");
}

TEST_F(Checker, SeesMessagesOfTheWrongSize) {
  auto& start =
      std::get<StartTransfer>(programs_[0].instructions[find<StartTransfer>(programs_[0])]);
  programs_[0].buffers[start.sends[0].strip].box = Box{{0, 100000}};
  expect_refused("cross");
}

TEST_F(Checker, SeesTwoTransfersInAnotherOrder) {
  Program& program = programs_[3];
  auto& first = std::get<StartTransfer>(program.instructions[find<StartTransfer>(program, 0)]);
  auto& second = std::get<StartTransfer>(program.instructions[find<StartTransfer>(program, 1)]);
  std::swap(first.channel, second.channel);
  EXPECT_THROW(check_programs(programs_), InternalError);
}

TEST_F(Checker, SeesADeadlockOfRendezvousSends) {
  // Rank 0 waits for its gather before it starts an exchange that the others wait for first.
  Program& program = programs_[0];
  const size_t start = find<StartTransfer>(program), finish = find<FinishTransfer>(program);
  const size_t gather_start = find<StartGather>(program), gather_end = find<FinishGather>(program);
  ASSERT_LT(start, gather_start);
  std::vector<Instruction> moved{program.instructions[gather_start],
                                 program.instructions[gather_end]};
  erase(program, gather_end);
  erase(program, gather_start);
  // The gathered buffer's Alloc comes along, so that only the order is wrong.
  const BufferId buffer = std::get<StartGather>(moved[0]).buffer;
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (const auto* alloc = std::get_if<Alloc>(&program.instructions[i]);
        alloc && alloc->buffer == buffer) {
      moved.insert(moved.begin(), program.instructions[i]);
      erase(program, i);
      break;
    }
  program.instructions.insert(program.instructions.begin() + static_cast<std::ptrdiff_t>(start),
                              moved.begin(), moved.end());
  ASSERT_GT(finish, start);
  EXPECT_THROW(check_programs(programs_), InternalError);
}

}  // namespace
}  // namespace tessera::checker_test
