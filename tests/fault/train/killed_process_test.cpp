// The whole process is killed, 50 times, at moments that matter: while a checkpoint is written,
// gets its name, displaces an older one. No start after it finds a broken one, and the weights at
// the end are those of a run that nobody disturbed.

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "tests/fault/train/folder_events.h"
#include "tests/fault/train/train_fault.h"

namespace tessera::killed_process_test {
namespace {

using Clock = std::chrono::steady_clock;

class KilledProcess : public TrainFault {
 protected:
  /// Starts the job and kills it at a random moment; false where it had ended by then.
  bool kill_once(std::mt19937_64& random) {
    const int count = 1 + static_cast<int>(random() % 14);  // some four for each checkpoint
    const std::chrono::microseconds after(random() % 4 == 0 ? random() % 20'000 : random() % 400);
    SCOPED_TRACE(fmt::format("{} us after event {}", after.count(), count));
    FolderEvents events(run() + "/checkpoints");
    EXPECT_TRUE(events.valid());
    Program program(command(), file("log"));
    EXPECT_TRUE(events.await_events(count, program) || program.ended()) << "it hangs";
    for (const auto end = Clock::now() + after; Clock::now() < end;) std::this_thread::yield();
    program.signal(SIGKILL);
    const auto exit_code = program.wait();
    EXPECT_TRUE(exit_code == 128 + SIGKILL || exit_code == 0) << program.errors();
    EXPECT_EQ(program.errors().find("warning"), std::string::npos) << program.errors();
    expect_whole_checkpoints();
    return exit_code == 128 + SIGKILL;
  }

  void clear_run() {
    std::filesystem::remove_all(run());
    std::filesystem::create_directories(run() + "/checkpoints");
  }
};

TEST_F(KilledProcess, FiftyTimesAtRandomMomentsLosesNothing) {
  constexpr uint64_t kSeed = 20;
  constexpr int kKills = 50;
  std::mt19937_64 random(kSeed);
  clear_run();
  for (int num_kills = 0; num_kills < kKills && !HasFailure();) {
    SCOPED_TRACE(fmt::format("seed {}, kill {}", kSeed, num_kills));
    if (kill_once(random)) {
      ++num_kills;
      continue;
    }
    EXPECT_EQ(weights(), undisturbed_weights());
    clear_run();
  }
  expect_resumes_and_finishes();
}

/// Each domain is at another place of its own data.
TEST_F(KilledProcess, WithSeveralDomainsLosesNothing) {
  for (const int64_t steps : {3, 8, 11}) {
    const int64_t moment = last_step(run()) + steps;
    Program program(command(kDomains), file("log"));
    ASSERT_TRUE(await([&] { return last_step(run()) >= moment || program.ended(); }));
    program.signal(SIGKILL);
    ASSERT_EQ(program.wait(), 128 + SIGKILL) << program.errors();
    expect_whole_checkpoints();
  }
  expect_undisturbed_weights(kDomains);
}

TEST_F(KilledProcess, BeforeItHasDoneAnythingIsAsIfItHadNotBeen) {
  std::filesystem::create_directories(run());
  {
    Program program(command(), file("log"));
    ASSERT_TRUE(await([&] { return std::filesystem::exists(run() + "/checkpoints"); }));
    program.signal(SIGKILL);
    ASSERT_EQ(program.wait(), 128 + SIGKILL);
  }
  const Outcome outcome = play(command());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(weights(), undisturbed_weights());
}

}  // namespace
}  // namespace tessera::killed_process_test
