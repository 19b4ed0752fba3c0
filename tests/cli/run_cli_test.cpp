// A run folder is a run, as a user meets it: other settings are refused, a complete run says so,
// and a run without a folder gets one.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace {

class RunCli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tessera_run_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }

 private:
  std::string folder_;
  std::filesystem::path before_;
};

const std::string kTrainTiny =
    "train unet2d:base=2,depth=2,classes=2 --input 2x1x16x16 --data synthetic:samples=8,classes=2 ";

TEST_F(RunCli, OtherSettingsAreRefusedWithTheDifferences) {
  ASSERT_EQ(tessera(kTrainTiny + "--run run --steps 2").exit_code, 0);
  const std::string record = read_all("run/run.json");
  const Outcome other =
      tessera(kTrainTiny + "--run run --steps 4 --lr 0.5 --loss dice --seed 7 --space 2x1");
  EXPECT_EQ(other.exit_code, 2);
  for (const char* part :
       {"run holds a run with other settings", "--learning-rate was 0.01, is 0.5",
        "--loss was the default, is \"dice\"", "--seed was 1, is 7",
        "resume it with the settings that it has", "another folder"})
    EXPECT_NE(other.err.find(part), std::string::npos) << part << " is not in " << other.err;
  EXPECT_EQ(other.err.find("--space"), std::string::npos) << other.err;
  EXPECT_EQ(read_all("run/run.json"), record);
  // The batch is the same, however it is given; a placement, more steps and the like may change.
  const Outcome same = tessera(
      "train unet2d:base=2,depth=2,classes=2 --input 1x1x16x16 --batch-size 2 --data "
      "synthetic:samples=8,classes=2 --run run --steps 4 --space 2x1 --keep 1 --on-nan skip");
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_NE(same.err.find("resumed at step 2"), std::string::npos) << same.err;
}

TEST_F(RunCli, ACompleteRunSaysSo) {
  const nlohmann::json first =
      nlohmann::json::parse(tessera(kTrainTiny + "--run run --steps 3 --json").out);
  const Outcome again = tessera(kTrainTiny + "--run run --steps 3 --json");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  const nlohmann::json json = nlohmann::json::parse(again.out);
  EXPECT_EQ(json["end"], "complete");
  EXPECT_EQ(json["steps_run"], 0);
  for (const char* key : {"steps", "loss", "validation", "checkpoint"})
    EXPECT_EQ(json[key], first[key]) << key;
  EXPECT_GT(json["loss"].get<double>(), 0);
  const Outcome text = tessera(kTrainTiny + "--run run --steps 3");
  EXPECT_NE(text.out.find("nothing to do: the run is complete with 3 steps, loss "),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("more --epochs or --steps extend it"), std::string::npos) << text.out;
}

TEST_F(RunCli, WithoutAFolderARunGetsOneOfItsOwn) {
  for (const char* number : {"-1", "-2"}) {
    const Outcome outcome = tessera(kTrainTiny + "--steps 1 --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string folder = nlohmann::json::parse(outcome.out)["run"];
    EXPECT_TRUE(folder.starts_with("runs/unet2d-20") && folder.ends_with(number)) << folder;
    EXPECT_NE(outcome.err.find("run folder " + folder), std::string::npos) << outcome.err;
    EXPECT_TRUE(std::filesystem::exists(folder + "/run.json"));
    EXPECT_NE(read_all(folder + "/run.json").find("\"folder\": \"" + folder + "\""),
              std::string::npos);
  }
}

/// One of the processes makes the folder, and as many work as mpirun has started.
TEST_F(RunCli, ProcessesAgreeOnTheFolderAndAreTheWorkers) {
  const Outcome outcome = tessera(
      "--version >/dev/null && mpirun --version >/dev/null 2>&1 && "
      "timeout 60 mpirun --allow-run-as-root --oversubscribe -n 2 " +
      std::string(TESSERA_PROGRAM) + " " + kTrainTiny + "--steps 1 --json");
  if (outcome.exit_code == 127) GTEST_SKIP() << "no mpirun";
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string folder = nlohmann::json::parse(outcome.out)["run"];
  EXPECT_EQ(nlohmann::json::parse(read_all(folder + "/run.json"))["num_ranks"], 2);
  EXPECT_TRUE(folder.ends_with("-1")) << folder;
  EXPECT_FALSE(std::filesystem::exists(folder.substr(0, folder.size() - 1) + "2"));
}

}  // namespace
