// Starts that cannot be right: another number of ranks than the placement has, a folder in use.

#include <csignal>

#include "tests/fault/train/train_fault.h"

namespace tessera::launch_test {
namespace {

class Launch : public TrainFault {};

TEST_F(Launch, WithTheWrongNumberOfRanksIsRefused) {
  if (!mpirun_is_installed()) GTEST_SKIP() << "no mpirun on this machine";
  for (const char* ranks : {"1", "2"}) {
    std::vector<std::string> words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", ranks};
    const std::vector<std::string> program = command();
    words.insert(words.end(), program.begin(), program.end());
    const Outcome outcome = play(words);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    expect_contains(outcome.errors, "the placement has 3 ranks, the launcher started ");
    expect_contains(outcome.errors, "--space");
  }
}

TEST_F(Launch, OfASecondRunInAFolderInUseIsRefused) {
  Program first(command({"--steps", "100000"}), file("first"));
  ASSERT_TRUE(await([&] { return last_step(run()) >= 3 || first.ended(); }));
  const Outcome second = play(command());
  EXPECT_EQ(second.exit_code, 2);
  expect_contains(second.errors, "another run is writing to ");
  const int64_t step = last_step(run());
  EXPECT_TRUE(await([&] { return last_step(run()) > step; })) << "the first run is disturbed";
  first.signal(SIGTERM);
  EXPECT_EQ(first.wait(), 0) << first.errors();
  expect_whole_checkpoints();
}

}  // namespace
}  // namespace tessera::launch_test
