// A disk that is full and a folder that cannot be written: a clear message, exit code 2, and what
// was saved before is still whole.

#include <cstring>

#include "tests/fault/train/small_disk.h"
#include "tests/fault/train/train_fault.h"

namespace tessera::disk_test {
namespace {

class Disk : public TrainFault {};

TEST_F(Disk, ThatIsFullEndsTheRunAndLosesNoCheckpoint) {
  SmallDisk disk(run(), 96);  // some checkpoints of 20 KiB, but not as many as are kept
  if (disk.error() != 0) GTEST_SKIP() << "may not mount: " << std::strerror(disk.error());
  const Outcome full = play(command({"--keep", "9"}));
  EXPECT_EQ(full.exit_code, 2);
  expect_contains(full.errors, "No space left on device");
  expect_contains(full.errors, run());
  ASSERT_FALSE(checkpoints(run()).empty());
  expect_whole_checkpoints();
  ASSERT_TRUE(disk.resize(4096));
  expect_resumes_and_finishes();
}

TEST_F(Disk, ThatTakesNoMoreBytesOfAFileIsNamedWithTheFile) {
  ASSERT_EQ(play(command({"--steps", "6"})).exit_code, 0);
  const auto before = checkpoints(run());
  const Outcome limited =
      play(command(), {.most_file_bytes = 8000});  // tensors have 8712, run.json 6100
  EXPECT_EQ(limited.exit_code, 2);
  expect_contains(limited.errors, "step 8 is not saved");
  expect_contains(limited.errors, "File too large");
  EXPECT_EQ(checkpoints(run()), before);
  expect_whole_checkpoints();
  expect_resumes_and_finishes();
}

TEST_F(Disk, WithAFileWhereTheRunFolderShouldBeIsRefusedAtOnce) {
  write_file(file("run"), "a file");
  for (const char* launch : {"threads", "mpi"}) {
    if (launch == std::string("mpi") && !mpirun_is_installed()) continue;
    SCOPED_TRACE(launch);
    const Outcome outcome = play(command({"--run", run() + "/below", "--launch", launch}));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
    expect_contains(outcome.errors, run() + "/below");
    expect_contains(outcome.errors, "Not a directory");
    expect_contains(outcome.errors, "--run");
  }
  EXPECT_EQ(read_file(run()), "a file");
}

TEST_F(Disk, WithoutTheFolderOfTheWeightsSaysSoAndKeepsTheCheckpoint) {
  const Outcome outcome =
      play(command({"--steps", "4", "--save-weights", file("nowhere/weights.safetensors")}));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
  expect_contains(outcome.errors, "nowhere");
}

}  // namespace
}  // namespace tessera::disk_test
