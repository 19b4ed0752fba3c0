// How long a run is: by the source's epochs, by steps, or by how often targets may be gone through.

#include "tessera/train/run_length.h"

#include <gtest/gtest.h>

#include "tests/unit/refusal.h"

namespace tessera::run_length_test {
namespace {

/// Epochs of this many batches.
BatchPlan batches(int64_t count) { return BatchPlan({.num_samples = 4 * count, .batch_size = 4}); }

TrainConfig with_target_epochs(const std::string& epochs) {
  TrainConfig config;
  config.target_epochs = epochs;
  return config;
}

TEST(RunLength, CountsEpochsOfTheSource) {
  TrainConfig config;
  EXPECT_EQ(run_length(config, batches(6), {}).steps, 60);
  config.epochs = 2;
  EXPECT_EQ(run_length(config, batches(6), {batches(2)}).steps, 12);
  config.accumulation = 4;
  EXPECT_EQ(run_length(config, batches(6), {batches(2)}).steps_per_epoch, 1);
  config.epochs.reset();
  config.steps = 5;
  EXPECT_EQ(run_length(config, batches(6), {batches(2)}).steps, 5);
}

/// Without a length of its own a run ends with the first target that has had its passes.
TEST(RunLength, EndsWithTheFirstTargetThatIsThrough) {
  EXPECT_EQ(run_length(with_target_epochs("3"), batches(6), {batches(5), batches(2)}).steps, 6);
  EXPECT_EQ(run_length(with_target_epochs("1/4"), batches(6), {batches(5), batches(2)}).steps, 5);
  EXPECT_EQ(run_length(with_target_epochs("0/4"), batches(6), {batches(5), batches(2)}).steps, 8);
  TrainConfig accumulating = with_target_epochs("3");
  accumulating.accumulation = 4;
  EXPECT_EQ(run_length(accumulating, batches(6), {batches(5)}).steps, 3);
}

/// A run may be as long as its targets last, and no longer.
TEST(RunLength, RefusesWhatTargetsDoNotLastFor) {
  TrainConfig config = with_target_epochs("0/4");
  config.steps = 8;
  EXPECT_EQ(run_length(config, batches(6), {batches(5), batches(2)}).steps, 8);
  config.steps = 9;
  EXPECT_EQ(refusal([&] {
              run_length(config, batches(6), {batches(5), batches(2)});
            }),
            "[--target-epochs] the run has 9 steps, and 4 epochs of target2 are through after 8; "
            "give at most that many --steps, or more epochs");
  config.steps.reset();
  config.epochs = 2;
  expect_refusal(
      [&] {
        run_length(config, batches(6), {batches(5), batches(2)});
      },
      "the run has 12 steps");
  TrainConfig accumulating = with_target_epochs("1");
  accumulating.accumulation = 4;
  expect_refusal([&] { run_length(accumulating, batches(6), {batches(2)}); },
                 "the run has 1 step, and 1 epoch of target1 are through after 0");
}

TEST(RunLength, RefusesEpochsOfNoTarget) {
  expect_refusal([] { run_length(with_target_epochs("3"), batches(6), {}); },
                 "[--target-epochs] the network reads the source alone");
  expect_refusal([] { run_length(with_target_epochs("3/4"), batches(6), {batches(1)}); },
                 "[--target-epochs] has 2 numbers, and there are 1 target");
  for (const char* bad : {"x", "-1", "3/", "1.5"})
    expect_refusal([&] { run_length(with_target_epochs(bad), batches(6), {batches(1)}); },
                   "is not legal; use whole numbers from 0 on");
}

}  // namespace
}  // namespace tessera::run_length_test
