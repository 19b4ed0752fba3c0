// The checker notices what would hang, cross or read freed memory.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/checker.h"
#include "tessera/lower/lower.h"
#include "tessera/zoo/zoo.h"

namespace tessera::checker_test {
namespace {

class Checker : public testing::Test {
 protected:
  void SetUp() override { make_programs({.step = StepKind::kTrain, .optimiser = {.copies = 1}}); }
  void make_programs(const LowerOptions& options) {
    programs_ = lower(build_model("cnn2d:base=2,depth=2", {2, 3, 16, 16}), {1, {2, 2}, {}}, options)
                    .programs;
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
  const size_t at = find<Alloc>(program, 1);
  const BufferId buffer = std::get<Alloc>(program.instructions[at]).buffer;
  std::erase_if(program.instructions, [&](const Instruction& instruction) {
    const auto* free = std::get_if<Free>(&instruction);
    return free != nullptr && free->buffer == buffer;
  });
  program.instructions.insert(program.instructions.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                              Free{buffer});
  expect_refused(fmt::format("buffer {} ({}) is not alive", buffer, program.buffers[buffer].name));
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
  // The last of a step without an update: nothing uses what it sums afterwards.
  programs_ = lower(build_model("cnn2d:base=2,depth=2", {2, 3, 16, 16}), {1, {2, 2}, {}}).programs;
  auto& list = programs_[2].instructions;
  const size_t at = find<FinishReduce>(programs_[2], 1);
  const auto finish = std::get<FinishReduce>(list[at]);
  erase(programs_[2], at);
  std::erase_if(list, [&](const Instruction& instruction) {
    const auto* free = std::get_if<Free>(&instruction);
    return free != nullptr && free->buffer == finish.received;
  });
  expect_refused(fmt::format("channel {} is never finished", finish.channel));
}

TEST_F(Checker, SeesAStripThatGoesBeforeItsTransferEnds) {
  erase(programs_[2], find<FinishTransfer>(programs_[2]));
  expect_refused("freed in the middle of a transfer");
}

TEST_F(Checker, SeesAMessageThatNobodyReceives) {
  auto& start =
      std::get<StartTransfer>(programs_[0].instructions[find<StartTransfer>(programs_[0])]);
  const int peer = start.receives.back().peer;
  start.receives.pop_back();
  // The receives that follow meet the message that nobody waits for.
  expect_refused(fmt::format("messages from rank {} to rank 0 cross", peer));
}

/// In a step that trains, a message of a reduction would come in its place.
TEST_F(Checker, SeesAMessageThatNobodySends) {
  make_programs({.step = StepKind::kForward});
  Program& program = programs_[0];
  for (size_t i = program.instructions.size(); i-- > 0;)
    if (auto* start = std::get_if<StartTransfer>(&program.instructions[i])) {
      start->sends.pop_back();  // the last message that rank 0 sends as a transfer
      break;
    }
  expect_refused("waits for ever");
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
  const int one = first.channel, other = second.channel;
  ASSERT_NE(one, other);
  for (Instruction& instruction : program.instructions) {
    if (auto* start = std::get_if<StartTransfer>(&instruction))
      start->channel = start->channel == one     ? other
                       : start->channel == other ? one
                                                 : start->channel;
    if (auto* finish = std::get_if<FinishTransfer>(&instruction))
      finish->channel = finish->channel == one     ? other
                        : finish->channel == other ? one
                                                   : finish->channel;
  }
  expect_refused("cross: channel");
}

TEST_F(Checker, SeesARowThatIsMergedBeforeItHasCome) {
  // A norm's statistics: the rows of the others are combined right after their transfer.
  Program& program = programs_[1];
  for (size_t i = 0; i + 1 < program.instructions.size(); ++i) {
    const auto* start = std::get_if<StartTransfer>(&program.instructions[i]);
    if (!start || program.buffers[start->receives[0].strip].kind != BufferKind::kStatistics)
      continue;
    size_t finish = i, combine;
    const auto ends = [&](const Instruction& each) {
      const auto* other = std::get_if<FinishTransfer>(&each);
      return other != nullptr && other->channel == start->channel;
    };
    while (!ends(program.instructions[finish])) ++finish;
    combine = finish;
    while (!std::holds_alternative<tessera::Run>(program.instructions[combine])) ++combine;
    const Instruction late = program.instructions[finish];
    program.instructions.insert(
        program.instructions.begin() + static_cast<std::ptrdiff_t>(combine) + 1, late);
    erase(program, finish);
    break;
  }
  expect_refused("statistics) is used while it is being received");
}

TEST_F(Checker, SeesAGradientThatIsUsedWhileItIsReduced) {
  Program& program = programs_[0];
  const size_t finish = find<FinishReduce>(program);
  // Of the bucket, not of the loss.
  const size_t of_bucket =
      std::get<FinishReduce>(program.instructions[finish]).buffer == program.loss
          ? find<FinishReduce>(program, 1)
          : finish;
  ASSERT_TRUE(std::holds_alternative<Free>(program.instructions[of_bucket + 1]));  // of its terms
  const auto begin = program.instructions.begin();
  const auto first = begin + static_cast<std::ptrdiff_t>(of_bucket);
  std::rotate(first, first + 2,
              begin + static_cast<std::ptrdiff_t>(find<SquareGradients>(program)) + 1);
  expect_refused("(bucket 0) is used while it is being reduced");
}

TEST_F(Checker, SeesReceivedTermsThatGoBeforeTheSum) {
  Program& program = programs_[0];
  BufferId terms = -1;
  for (const Instruction& instruction : program.instructions)
    if (const auto* start = std::get_if<StartReduce>(&instruction); start && start->received >= 0)
      terms = start->received;
  ASSERT_GE(terms, 0);
  const auto is_start = [&](const Instruction& instruction) {
    const auto* start = std::get_if<StartReduce>(&instruction);
    return start != nullptr && start->received == terms;
  };
  const auto is_free = [&](const Instruction& instruction) {
    const auto* free = std::get_if<Free>(&instruction);
    return free != nullptr && free->buffer == terms;
  };
  auto& list = program.instructions;
  list.erase(std::find_if(list.begin(), list.end(), is_free));
  list.insert(std::find_if(list.begin(), list.end(), is_start) + 1, Free{terms});
  expect_refused("is freed in the middle of a reduction");
}

TEST_F(Checker, SeesADeadlockOfRendezvousSends) {
  // Rank 0 waits for its second exchange before it starts the first, which the others wait for.
  Program& program = programs_[0];
  std::vector<size_t> starts;
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (std::holds_alternative<StartTransfer>(program.instructions[i])) starts.push_back(i);
  const auto& first = std::get<StartTransfer>(program.instructions[starts[0]]);
  size_t finish = starts[0];
  for (; finish < program.instructions.size(); ++finish)
    if (const auto* each = std::get_if<FinishTransfer>(&program.instructions[finish]);
        each && each->channel == first.channel)
      break;
  const std::vector<Instruction> moved{program.instructions[starts[0]],
                                       program.instructions[finish]};
  erase(program, finish);
  erase(program, starts[0]);
  // Its receives come back after everything else has been waited for.
  program.instructions.insert(program.instructions.end(), moved.begin(), moved.end());
  EXPECT_THROW(check_messages(programs_), InternalError);
}

}  // namespace
}  // namespace tessera::checker_test
