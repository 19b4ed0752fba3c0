// NaN and infinity, in the data or because the loss diverges.

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "tests/fault/train/train_fault.h"

namespace tessera::bad_data_test {
namespace {

class BadData : public TrainFault {
 protected:
  static constexpr int64_t kSamples = 12, kRows = 24, kColumns = 16;

  /// Images of noise with bright labels; row `bad_row` of sample 7 holds a NaN.
  std::string write_data(int64_t bad_row) {
    constexpr uint64_t kSeed = 3;
    std::mt19937_64 random(kSeed);
    std::vector<float> images(kSamples * kRows * kColumns);
    std::vector<uint8_t> targets(images.size());
    for (size_t i = 0; i < images.size(); ++i) {
      images[i] = static_cast<float>(random() % 1000) / 1000;
      targets[i] = images[i] > 0.5f;
    }
    images[(7 * kRows + bad_row) * kColumns + 5] = NAN;
    write_npy(file("images.npy"), {kSamples, 1, kRows, kColumns}, images);
    write_npy(file("targets.npy"), {kSamples, kRows, kColumns}, targets);
    return fmt::format("npy:{},{}", file("images.npy"), file("targets.npy"));
  }

  std::vector<std::string> with_data(const std::string& data, const std::string& on_nan,
                                     const std::string& launch) {
    return command({"--data", data, "--on-nan", on_nan, "--launch", launch, "--steps", "24",
                    "--validation-fraction", "0"});
  }
};

/// The NaN lies in the box of the last rank: the others see only the loss.
TEST_F(BadData, StopsAndNamesTheSampleWhicheverRankHoldsIt) {
  for (const char* launch : {"threads", "mpi"})
    for (const int64_t row : {2, 22}) {
      if (launch == std::string("mpi") && (row == 2 || !mpirun_is_installed())) continue;
      SCOPED_TRACE(fmt::format("row {}, {}", row, launch));
      const Outcome outcome = play(with_data(write_data(row), "stop", launch));
      EXPECT_EQ(outcome.exit_code, 2);
      expect_contains(outcome.errors,
                      "sample 7 of the data holds a value that is not a finite number");
      expect_contains(outcome.errors, "--on-nan skip");
      expect_whole_checkpoints();
    }
}

TEST_F(BadData, IsLeftOutWhereTheUserSaysSo) {
  const Outcome outcome = play(with_data(write_data(22), "skip", "threads"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  expect_contains(outcome.errors, "the step is skipped");
  // Later steps are sound: a NaN in the weights or running statistics would never go away.
  const std::string metrics = read_file(run() + "/metrics.csv");
  const std::string last_row = metrics.substr(metrics.rfind("\n24,"));
  const std::string row_before = metrics.substr(metrics.rfind("\n23,"));
  EXPECT_TRUE(last_row.find("nan") == std::string::npos ||
              row_before.substr(0, row_before.find('\n', 1)).find("nan") == std::string::npos)
      << metrics;
}

TEST_F(BadData, LossThatDivergesStopsTheRun) {
  const Outcome outcome = play(command({"--learning-rate", "1e30"}));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.errors;
  expect_contains(outcome.errors, "lower --learning-rate");
}

}  // namespace
}  // namespace tessera::bad_data_test
