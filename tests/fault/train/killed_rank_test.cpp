// One process of an MPI job dies or stops: the job ends soon, says which rank it was, returns 3,
// leaves no process behind, and the same command continues.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "tests/fault/train/train_fault.h"

namespace tessera::killed_rank_test {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

const Words kMpi{"--launch", "mpi"};
/// A rank for each of three stages, with both micro-batches on their way at once. Twelve samples
/// for training fill batches of two: one sample has no statistics for two micro-batches.
const Words kStages{"--launch",        "mpi",
                    "--stages",        "3",
                    "--space",         "1x1",
                    "--micro-batches", "2",
                    "--norm",          "micro-batch",
                    "--balance",       "layers",
                    "--data",          "synthetic:samples=13,classes=2"};
/// Slices of layers, whose V-cycles become more in the first steps.
const Words kLayers{"--launch",
                    "mpi",
                    "train",
                    "resnet_chain2d:blocks=24,width=4,classes=2,norm=batch",
                    "--space",
                    "1x1",
                    "--layers",
                    "3",
                    "--multigrid",
                    "coarsening=4,forward=1,backward=1,relax=F",
                    "--multigrid-residual",
                    "1e-9",
                    "--data",
                    "synthetic:kind=classification,samples=12,classes=2"};

class KilledRank : public TrainFault {
 protected:
  void SetUp() override {
    if (!mpirun_is_installed()) GTEST_SKIP() << "no mpirun on this machine";
  }

  /// The ranks' processes, once all are there.
  static std::map<int, pid_t> await_ranks(Program& job) {
    EXPECT_TRUE(await([&] { return job.ranks().size() == kRanks || job.ended(); }));
    return job.ranks();
  }

  /// Waits for the end that the loss of a rank must lead to, with one of the messages.
  static void expect_end(Program& job, const Words& messages) {
    const Clock::time_point begin = Clock::now();
    // Ten seconds are promised on a machine of one's own; this one may be busy.
    const auto exit_code = job.wait(std::chrono::seconds(30));
    ASSERT_TRUE(exit_code) << "the job goes on without the rank";
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    fmt::print("ended {:.1f} s after it\n", seconds.count());
    EXPECT_EQ(*exit_code, 3) << job.errors();
    const std::string errors = job.errors();
    EXPECT_TRUE(std::any_of(
        messages.begin(), messages.end(),
        [&](const std::string& message) { return errors.find(message) != std::string::npos; }))
        << fmt::format("none of \"{}\" is in:\n", fmt::join(messages, "\", \"")) << errors;
    EXPECT_TRUE(await([] { return living_descendants().empty(); })) << "a process is left behind";
  }

  /// Kills the rank some steps after the job has gone on.
  void kill_rank(const Words& more, int victim, int64_t steps) {
    const int64_t moment = last_step(run()) + steps;
    SCOPED_TRACE(fmt::format("rank {} dies after step {}", victim, moment));
    Program job(command(more), file("log"));
    const std::map<int, pid_t> ranks = await_ranks(job);
    ASSERT_TRUE(ranks.contains(victim)) << job.errors();
    ASSERT_TRUE(await([&] { return last_step(run()) >= moment || job.ended(); }));
    kill(ranks.at(victim), SIGKILL);
    expect_end(job, {fmt::format("tessera: rank {} (pid {}) was killed by signal 9", victim,
                                 ranks.at(victim))});
    expect_whole_checkpoints();
  }
};

TEST_F(KilledRank, IsNamedAndTheNextStartContinues) {
  constexpr uint64_t kSeed = 4;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 3; ++round) {
    const int victim = static_cast<int>(random() % kRanks);
    SCOPED_TRACE(fmt::format("seed {}", kSeed));
    kill_rank(kMpi, victim, 1 + static_cast<int64_t>(random() % 10));
  }
  expect_resumes_and_finishes(kMpi);
}

/// The first stage reads the images and the last one has the loss, the one between neither; each
/// has parameters that no other rank has.
TEST_F(KilledRank, OfAnyStageEndsTheJob) {
  for (int victim = 0; victim < kRanks; ++victim) kill_rank(kStages, victim, 3 + victim);
  expect_undisturbed_weights(kStages);
}

/// Nearly all of a step is sweeps. Checkpoints know how many V-cycles the run has come to.
TEST_F(KilledRank, InASweepEndsTheJob) {
  for (int victim = 0; victim < kRanks; ++victim) kill_rank(kLayers, victim, 3 + 4 * victim);
  expect_undisturbed_weights(kLayers);
}

/// The source's rank has the labels, the others each a target; they share an encoder and a decoder.
TEST_F(KilledRank, OfAnyDomainEndsTheJob) {
  const Words domains = with(kDomains, kMpi);
  for (int victim = 0; victim < kRanks; ++victim) kill_rank(domains, victim, 3 + 2 * victim);
  expect_undisturbed_weights(domains);
}

/// Its process is there, and may or may not have said so to the launcher.
TEST_F(KilledRank, MayDieBeforeItHasBegun) {
  Program job(command(kMpi), file("log"));
  const std::map<int, pid_t> ranks = await_ranks(job);
  ASSERT_TRUE(ranks.contains(1)) << job.errors();
  kill(ranks.at(1), SIGKILL);
  expect_end(job, {"tessera: rank 1 (pid ", " without starting rank 1\n"});
}

TEST_F(KilledRank, ThatIsOnlyStoppedIsFoundByItsSilence) {
  for (const int victim : {0, 2}) {
    const int64_t moment = last_step(run()) + 5;
    Program job(command({"--launch", "mpi", "--timeout", "6"}), file("log"));
    const std::map<int, pid_t> ranks = await_ranks(job);
    ASSERT_TRUE(ranks.contains(victim)) << job.errors();
    ASSERT_TRUE(await([&] { return last_step(run()) >= moment || job.ended(); }));
    kill(ranks.at(victim), SIGSTOP);
    expect_end(job, {fmt::format("rank {} has not been heard from for ", victim)});
  }
  expect_resumes_and_finishes();
}

TEST_F(KilledRank, GoesWithTheLauncher) {
  {
    Program job(command(kMpi), file("log"));
    ASSERT_TRUE(await([&] { return last_step(run()) >= 5 || job.ended(); }));
    job.signal(SIGKILL);
    ASSERT_EQ(job.wait(), 128 + SIGKILL) << job.errors();
    EXPECT_TRUE(await([] { return living_descendants().empty(); })) << "ranks without a launcher";
  }
  expect_resumes_and_finishes();
}

}  // namespace
}  // namespace tessera::killed_rank_test
