// Ranks that are killed or stopped for real, at any moment: the job ends, names the rank and
// returns 3. The ranks' own timeout is far beyond the watchdog's patience.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/fault/mpi/expect.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::dying_test {
namespace {

class MpiDying : public WatchedTest {};

TEST_F(MpiDying, AKilledRankIsNamed) {
  constexpr uint64_t kSeed = 17;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 5; ++round) {
    const int victim = static_cast<int>(random() % 4);
    const int moment_us = static_cast<int>(random() % 300'000);
    SCOPED_TRACE(fmt::format("seed {}, rank {} after {} us", kSeed, victim, moment_us));
    const JobResult result = play(
        4, "kill", {std::to_string(victim), std::to_string(SIGKILL), std::to_string(moment_us)});
    EXPECT_EQ(result.exit_code, 3);
    expect_contains(result, fmt::format("tessera: rank {} (pid ", victim));
    expect_contains(result, ") was killed by signal 9 (Killed)");
  }
}

TEST_F(MpiDying, ARankKilledInACollectiveIsNamed) {
  constexpr uint64_t kSeed = 23;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 3; ++round) {
    const int victim = static_cast<int>(random() % 5);
    const int moment_us = static_cast<int>(random() % 300'000);
    SCOPED_TRACE(fmt::format("seed {}, rank {} after {} us", kSeed, victim, moment_us));
    const JobResult result =
        play(5, "kill_in_collective",
             {std::to_string(victim), std::to_string(SIGKILL), std::to_string(moment_us)});
    EXPECT_EQ(result.exit_code, 3);
    expect_contains(result, fmt::format("tessera: rank {} (pid ", victim));
    expect_contains(result, ") was killed by signal 9 (Killed)");
  }
}

TEST_F(MpiDying, ARankStoppedInACollectiveEndsTheJob) {
  const JobResult result = play(5, "stop_in_collective", {"3", std::to_string(SIGSTOP), "150000"});
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "rank 3 has not been heard from for ");
}

TEST_F(MpiDying, ACrashedRankIsNamed) {
  const JobResult result = play(3, "kill", {"2", std::to_string(SIGSEGV), "1000"});
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "tessera: rank 2 (pid ");
  expect_contains(result, ") was killed by signal 11");
}

TEST_F(MpiDying, AStoppedRankIsFoundByItsSilence) {
  const JobResult result = play(4, "stop", {"2"});
  EXPECT_EQ(result.exit_code, 3);
  expect_contains(result, "rank 2 has not been heard from for ");
  expect_contains(result, "it may be stopped or its node may be gone");
}

TEST_F(MpiDying, ARankStoppedInTheMidstOfTrafficEndsTheJob) {
  const JobResult result = play(3, "stop_in_traffic", {"1", std::to_string(SIGSTOP), "200000"});
  EXPECT_EQ(result.exit_code, 3);
}

/// Sends a signal to this process, the launcher, when all ranks run.
class Interruption {
 public:
  Interruption(int ranks, int signal, int times) {
    std::string name = (std::filesystem::temp_directory_path() / "tessera-running-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    folder_ = name;
    thread_ = std::jthread([this, ranks, signal, times] {
      await_running(folder_, ranks);
      for (int n = 0; n < times; ++n) {
        kill(getpid(), signal);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));  // two signals, not one
      }
    });
  }
  ~Interruption() {
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::jthread thread_;
};

TEST_F(MpiDying, ASignalToTheLauncherLetsTheRanksEndWell) {
  const Interruption interruption(3, SIGTERM, 1);
  const JobResult result = play(3, "signal", {interruption.folder()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
}

TEST_F(MpiDying, ASignalThatTheRanksDoNotHandleEndsThem) {
  const Interruption interruption(3, SIGINT, 1);
  const JobResult result = play(3, "killed", {interruption.folder()});
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  expect_contains(result, "tessera: ended by signal 2 (Interrupt)");
}

}  // namespace
}  // namespace tessera::dying_test
