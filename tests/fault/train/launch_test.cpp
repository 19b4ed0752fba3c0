// The program under a launcher that was told another number of ranks.

#include "tests/fault/train/train_fault.h"

namespace tessera {
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

}  // namespace
}  // namespace tessera
