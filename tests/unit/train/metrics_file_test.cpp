// metrics.csv of a run that is killed and resumed is like that of a run that was not.

#include "tessera/train/metrics_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::metrics_file_test {
namespace {

const std::vector<std::string> kColumns{"loss", "lr"};

void write_rows(MetricsFile& metrics, int64_t first, int64_t last) {
  for (int64_t step = first; step <= last; ++step)
    metrics.append(step, {1.0 / static_cast<double>(step), 0.1});
}

TEST(MetricsFile, WritesAHeaderAndRows) {
  const ScratchFolder folder;
  MetricsFile metrics(folder / "metrics.csv", {"loss", "val_iou"}, std::nullopt);
  EXPECT_EQ(read_bytes(folder / "metrics.csv"), "step,loss,val_iou\n");
  metrics.append(1, {0.1, std::nullopt});
  metrics.append(2, {3.0, 1.0 / 3});
  metrics.append(3, {std::numeric_limits<double>::quiet_NaN(), 1e-30});
  EXPECT_EQ(read_bytes(folder / "metrics.csv"),
            "step,loss,val_iou\n1,0.1,\n2,3,0.3333333333333333\n3,nan,1e-30\n")
      << "rows must be there before the file is closed";
  metrics.sync();
}

TEST(MetricsFile, ANewRunStartsAnew) {
  const ScratchFolder folder;
  write_bytes(folder / "metrics.csv", "something else\n1,2,3\n");
  MetricsFile metrics(folder / "metrics.csv", kColumns, std::nullopt);
  EXPECT_EQ(read_bytes(folder / "metrics.csv"), "step,loss,lr\n");
}

TEST(MetricsFile, AResumedRunsFileIsLikeAnUninterruptedOnes) {
  const ScratchFolder folder;
  {
    MetricsFile whole(folder / "whole.csv", kColumns, std::nullopt);
    write_rows(whole, 1, 20);
  }
  for (int64_t checkpoint : {0, 1, 7, 12}) {
    {
      MetricsFile killed(folder / "resumed.csv", kColumns, std::nullopt);
      write_rows(killed, 1, 12);
    }
    MetricsFile resumed(folder / "resumed.csv", kColumns, checkpoint);
    write_rows(resumed, checkpoint + 1, 20);
    EXPECT_EQ(read_bytes(folder / "resumed.csv"), read_bytes(folder / "whole.csv")) << checkpoint;
  }
}

TEST(MetricsFile, ARowThatAKillCutShortIsDropped) {
  const ScratchFolder folder;
  write_bytes(folder / "metrics.csv", "step,loss,lr\n1,0.5,0.1\n2,0.4");
  MetricsFile metrics(folder / "metrics.csv", kColumns, 2);
  metrics.append(2, {0.4, 0.1});
  EXPECT_EQ(read_bytes(folder / "metrics.csv"), "step,loss,lr\n1,0.5,0.1\n2,0.4,0.1\n");

  write_bytes(folder / "metrics.csv", "step,lo");
  MetricsFile header(folder / "metrics.csv", kColumns, 0);
  EXPECT_EQ(read_bytes(folder / "metrics.csv"), "step,loss,lr\n");
}

TEST(MetricsFile, ResumesWithoutAFile) {
  const ScratchFolder folder;
  MetricsFile metrics(folder / "metrics.csv", kColumns, 7);
  metrics.append(8, {0.5, 0.1});
  EXPECT_EQ(read_bytes(folder / "metrics.csv"), "step,loss,lr\n8,0.5,0.1\n");
}

TEST(MetricsFile, RefusesAFileThatIsNotItsOwn) {
  const ScratchFolder folder;
  write_bytes(folder / "metrics.csv", "step,loss\n1,0.5\n");
  expect_refusal([&] { MetricsFile(folder / "metrics.csv", kColumns, 1); },
                 "has the columns \"step,loss\", this run writes step,loss,lr: an earlier version "
                 "wrote others, and so does other data; move the file away");
  EXPECT_EQ(read_bytes(folder / "metrics.csv"), "step,loss\n1,0.5\n") << "it must stay as it was";
  write_bytes(folder / "metrics.csv", "step,loss,lr\n1,0.5,0.1\nhello\n");
  expect_refusal([&] { MetricsFile(folder / "metrics.csv", kColumns, 1); },
                 "metrics.csv:3: \"hello\" does not start with a step");
}

/// Steps would be there twice, or with numbers that belong elsewhere.
TEST(MetricsFile, RefusesRowsThatNoRunHasWritten) {
  const ScratchFolder folder;
  const std::string path = folder / "metrics.csv";
  write_bytes(path, "step,loss,lr\n1,0.5,0.1\n2,0.4,0.1\n2,0.4,0.1\n");
  expect_refusal([&] { MetricsFile(path, kColumns, 2); },
                 "metrics.csv:4: \"2,0.4,0.1\" comes after step 2; remove");
  write_bytes(path, "step,loss,lr\n1,0.5,0.1\n3,0.4,0.1\n2,0.3,0.1\n");
  expect_refusal([&] { MetricsFile(path, kColumns, 1); }, "comes after step 3");
  write_bytes(path, "step,loss,lr\n1,0.50.1\n");
  expect_refusal([&] { MetricsFile(path, kColumns, 1); },
                 "metrics.csv:2: \"1,0.50.1\" has 2 cells, the header has 3");
}

TEST(MetricsFile, AFileThatCannotBeReadIsNoEmptyOne) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "metrics.csv");
  expect_refusal([&] { MetricsFile(folder / "metrics.csv", kColumns, 1); },
                 "[metrics] cannot read");
}

TEST(MetricsFile, RefusesAFolderThatIsNotThere) {
  const ScratchFolder folder;
  expect_refusal([&] { MetricsFile(folder / "no/metrics.csv", kColumns, std::nullopt); },
                 "No such file or directory");
}

}  // namespace
}  // namespace tessera::metrics_file_test
