// Random faults on real runs: signals, disks, damaged files, rivals, data that changes. After each,
// the exit code is one that docs/errors.md knows, nothing beside the run has changed, no checkpoint
// is lost or broken, and the same command ends with the bits of a run that nobody disturbed.
//
//   TESSERA_ATTACK_FAULTS or TESSERA_ATTACK_CASES   number of faults; by default one of each kind
//   TESSERA_ATTACK_SEED                             the first one's seed; the others count on
//   TESSERA_ATTACK_JOBS                             processes that run faults at the same time

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/attack/faults/fault_table.h"
#include "tests/attack/faults/workers.h"
#include "tests/fault/train/run_files.h"

namespace tessera::faults_test {
namespace {

namespace fs = std::filesystem;

/// Some of the faults that any launch can suffer strike ranks that are processes.
LaunchedBy launch_of(const Fault& fault, uint64_t seed) {
  if (fault.needs == Needs::kMpi) return LaunchedBy::kMpi;
  const uint64_t round = seed / fault_table().size();
  return mpirun_is_installed() && (round + seed) % 20 == 0 ? LaunchedBy::kMpi
                                                           : LaunchedBy::kThreads;
}

bool machine_has(Needs needs) {
  if (needs == Needs::kMpi) return mpirun_is_installed();
  if (needs != Needs::kMount) return true;
  static const bool may_mount = [] {
    const TemporaryFolder folder;
    return SmallDisk(folder.path() + "/disk", 64).error() == 0;
  }();
  return may_mount;
}

CaseOutcome play_fault(uint64_t seed) {
  const Fault& fault = fault_table()[seed % fault_table().size()];
  if (!machine_has(fault.needs)) return {seed, fault.name, true, ""};
  Scene scene(seed, launch_of(fault, seed));
  fault.play(scene);
  if (fault.strikes == Strikes::kTraining)
    scene.expect_training_recovers();
  else
    scene.expect_prediction_recovers();
  return {seed, fault.name, false, scene.account()};
}

/// Whole checkpoints appear and go as the program does it, one after the other.
void come_and_go(const std::string& run, const std::atomic<bool>& ended) {
  const std::string folder = run + "/checkpoints/";
  for (int step = 0; !ended; ++step) {
    const std::string name = fmt::format("step-{:06}", step);
    fs::create_directories(folder + ".writing");
    write_file(folder + ".writing/tensors.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
    write_file(folder + ".writing/state.json", "{\"tensor_file_bytes\": 10}");
    fs::rename(folder + ".writing", folder + name);
    fs::rename(folder + name, folder + ".removing");
    fs::remove_all(folder + ".removing");
  }
}

/// A rank that outlives its killed launcher still removes an old checkpoint while the test looks.
TEST(Faults, ACheckpointThatGoesMeanwhileIsNotDamaged) {
  const TemporaryFolder run;
  fs::create_directories(run.path() + "/checkpoints");
  std::atomic<bool> ended = false;
  std::thread program([&] { come_and_go(run.path(), ended); });
  int64_t seen = 0;
  for (int64_t i = 0; i < 20'000 || seen == 0; ++i)  // until the other thread had its turn
    for (const std::string& checkpoint : checkpoints(run.path())) {
      EXPECT_EQ(fault_of_checkpoint(checkpoint), "");
      ++seen;
    }
  ended = true;
  program.join();
  fs::create_directories(run.path() + "/checkpoints/step-000003");
  EXPECT_NE(fault_of_checkpoint(run.path() + "/checkpoints/step-000003"), "") << "this one stays";
}

TEST(Faults, LeaveNothingLostAndNothingElseTouched) {
  setenv("OMP_NUM_THREADS", "1", /*overwrite=*/0);
  const int64_t default_count =
      number_from_environment("TESSERA_ATTACK_CASES", static_cast<int64_t>(fault_table().size()));
  const int64_t count = number_from_environment("TESSERA_ATTACK_FAULTS", default_count);
  const uint64_t first_seed = number_from_environment("TESSERA_ATTACK_SEED", 29'000);
  const int jobs = static_cast<int>(number_from_environment("TESSERA_ATTACK_JOBS", 1));
  for (const SmallJob& job : small_jobs()) undisturbed(job);  // once, not in every worker
  int64_t num_played = 0, num_skipped = 0, num_failed = 0;
  for (const CaseOutcome& outcome : play_cases(first_seed, count, jobs, play_fault)) {
    ++(outcome.skipped ? num_skipped : num_played);
    if (outcome.account.empty()) continue;
    ++num_failed;
    ADD_FAILURE() << outcome.name
                  << ", as told above; to repeat it: TESSERA_ATTACK_SEED=" << outcome.seed
                  << " TESSERA_ATTACK_FAULTS=1 attack_faults_test";
  }
  fmt::print("faults: {} cases from seed {} on, {} failed, {} skipped\n", num_played, first_seed,
             num_failed, num_skipped);
  EXPECT_EQ(num_played + num_skipped, count);
}

}  // namespace
}  // namespace tessera::faults_test
