// SIGTERM and SIGINT at random moments, once or twice: while mpirun starts, while ranks plan, train
// and end. The exit code is a documented one, no process is left, and in the end the weights are
// those of a run that nobody disturbed.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/attack/launchers/attack.h"

namespace tessera::moment_test {
namespace {

constexpr int kSteps = 400;

class SignalAtAnyMoment : public LauncherAttack {
 protected:
  Words under_our_launcher() const { return train("run", kSteps, {"--launch", "mpi"}); }
  Words under_mpirun() const {
    Words words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"};
    const Words program = train("run", kSteps);
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }
  /// Of a run on threads: the transport has no influence on any bit.
  std::string undisturbed() {
    const Outcome outcome = attack(train("undisturbed", kSteps));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return read_file(file("undisturbed.safetensors"));
  }
  void expect_resumes(const Words& words, const std::string& weights) {
    const Outcome outcome = attack(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(read_file(file("run.safetensors")), weights);
    for (const std::string& checkpoint : checkpoints(file("run")))
      EXPECT_EQ(fault_of_checkpoint(checkpoint), "") << checkpoint;
  }
  /// Starts it, signals it, and gives back its exit code.
  std::optional<int> disturb(const Words& words, std::mt19937_64& random, int signal) {
    count_case();
    Program program(words, file("log"));
    for (size_t n = 1 + random() % 2; n > 0; --n) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 3'000));
      program.signal(signal);
    }
    const auto exit_code = program.wait();
    EXPECT_TRUE(exit_code) << "it hangs: " << program.errors();
    errors_ = program.errors();
    if (exit_code) expect_nothing_left();
    return exit_code;
  }

  void start_anew_where_finished(const std::string& weights) {
    if (!std::filesystem::exists(file("run.safetensors")) || last_step(file("run")) < kSteps)
      return;
    EXPECT_EQ(read_file(file("run.safetensors")), weights);
    std::filesystem::remove_all(file("run"));
    std::filesystem::remove(file("run.safetensors"));
  }

  std::string errors_;
};

TEST_F(SignalAtAnyMoment, OfOurLauncherEndsWithADocumentedCode) {
  if (!mpirun_is_there()) GTEST_SKIP() << "no mpirun on this machine";
  const std::string weights = undisturbed();
  const AttackPlan plan(4);
  for_each_case(plan, [&](std::mt19937_64& random) {
    const int signal = random() % 2 ? SIGTERM : SIGINT;
    const auto exit_code = disturb(under_our_launcher(), random, signal);
    EXPECT_TRUE(exit_code == 0 || exit_code == 128 + signal)
        << exit_code.value_or(-1) << ": " << errors_;
    start_anew_where_finished(weights);
  });
  expect_resumes(under_our_launcher(), weights);
}

/// The exit code is mpirun's own there.
TEST_F(SignalAtAnyMoment, OfMpirunLosesNothing) {
  if (!mpirun_is_there()) GTEST_SKIP() << "no mpirun on this machine";
  const std::string weights = undisturbed();
  const AttackPlan plan(2);
  for_each_case(plan, [&](std::mt19937_64& random) {
    disturb(under_mpirun(), random, random() % 2 ? SIGTERM : SIGINT);
    start_anew_where_finished(weights);
  });
  expect_resumes(under_mpirun(), weights);
}

}  // namespace
}  // namespace tessera::moment_test
