// Several domains as a user meets them: proofs and pictures of placements by domains, training from
// data sets of their own, and what is refused.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace {

using nlohmann::json;

const std::string kDigits = " dsn:base=2,code=6,classes=3,targets=2 --input 4x1x16x16 ";
const std::string kMadeUp = "synthetic:kind=classification,samples=16,classes=3,scale=8";

class DomainsCli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tessera_domains_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string data() {
    return " --data 'source=" + kMadeUp + ";target1=" + kMadeUp + ",domain=1;target2=" + kMadeUp +
           ",domain=2' ";
  }
  /// Eight images of 1x16x16 without labels.
  std::string write_images() const {
    std::filesystem::create_directories(folder_);
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (8, 1, 16, 16), }\n";
    const std::string path = folder_ + "/images.npy";
    std::ofstream(path, std::ios::binary)
        << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(header.size()) << '\0' << header
        << std::string(8 * 16 * 16, '\x40');
    return path;
  }
  static void expect_refused(const std::string& arguments, const std::string& part) {
    const Outcome outcome = tessera(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << ": " << outcome.err;
  }

  std::string folder_;
};

TEST_F(DomainsCli, VerifyProvesEncodersOnWorkersOfTheirOwn) {
  const Outcome outcome = tessera("verify" + kDigits + "--domains 2 --space 1x2 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["ranks"], 12);
  EXPECT_EQ(report["ok"], true);
}

TEST_F(DomainsCli, PlanDrawsWhereTheDomainsRun) {
  const Outcome outcome = tessera("plan" + kDigits + "--domains 1 --stages 2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* line :
       {"source     stages 0, 1", "target1    stages 2, 3", "target2    stages 4, 5"})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << "\n" << outcome.out;
}

TEST_F(DomainsCli, TrainsAndAppliesTheTaskAlone) {
  const std::string run = folder_ + "/run";
  const Outcome trained = tessera("train" + kDigits + data() + "--domains 1 --steps 4 --run " +
                                  run + " --validation-fraction 0.25 --loss cross_entropy --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome resumed = tessera("train" + kDigits + data() + "--domains 1 --steps 4 --run " +
                                  run + " --validation-fraction 0.25 --loss cross_entropy --json");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  // Any domain can be scored that has labels.
  const Outcome scored = tessera("evaluate " + run + " --data " + kMadeUp + ",domain=1 --json");
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  EXPECT_EQ(json::parse(scored.out)["samples"], 16);
}

/// A table for each domain, and scores of one target beside the source's.
TEST_F(DomainsCli, TrainsByTheTablesOfAFileAndScoresTargets) {
  std::filesystem::create_directories(folder_);
  const std::string file = folder_ + "/run.toml", run = folder_ + "/run";
  std::ofstream(file) << "[model]\nname = 'dsn:base=2,code=6,classes=3,targets=2'\n"
                      << "input = '4x1x16x16'\n[train]\nsteps = 3\n[data]\n"
                      << "validation_fraction = 0.25\nvalidate_targets = 'target2'\n"
                      << "[data.source]\nsource = '" << kMadeUp << "'\n"
                      << "[data.target1]\nsource = '" << kMadeUp << "'\ndomain = 1\nbatch = 3\n"
                      << "[data.target2]\nsource = '" << kMadeUp << "'\nshuffle = false\n";
  const Outcome trained = tessera("train --config " + file + " --run " + run + " --json");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const json report = json::parse(trained.out);
  EXPECT_TRUE(report["target_validations"]["target2"].contains("accuracy"));
  EXPECT_EQ(report["target_validations"].size(), 1u);
  std::string columns;
  std::ifstream metrics(run + "/metrics.csv");
  std::getline(metrics, columns);
  EXPECT_NE(columns.find(",val_loss,accuracy,target2_loss,target2_accuracy"), std::string::npos)
      << columns;
  const Outcome plan = tessera("plan --config " + file + " --json");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
}

/// Sixteen samples of a target make four batches; two passes over them are eight steps.
TEST_F(DomainsCli, ATargetsDataMayBeGoneThroughSoManyTimes) {
  const std::string train = "train" + kDigits + data() + "--validation-fraction 0 --json --run ";
  const std::string run = folder_ + "/run";
  const Outcome outcome = tessera(train + run + " --target-epochs 0/2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["steps"], 8);
  // More passes, and the run goes on where it was.
  const Outcome longer = tessera(train + run + " --target-epochs 0/3");
  ASSERT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_NE(longer.err.find("resumed at step 8"), std::string::npos) << longer.err;
  EXPECT_EQ(json::parse(longer.out)["steps"], 12);
  expect_refused(train + folder_ + "/other --target-epochs 2 --epochs 3",
                 "[--target-epochs] the run has 12 steps, and 2 epochs of target1 are through "
                 "after 8; give at most that many --steps, or more epochs");
}

TEST_F(DomainsCli, RefusesTargetsThatCannotBeScored) {
  const std::string images = write_images();
  const std::string sets = "--steps 1 --data 'source=" + kMadeUp + ";target1=files:" + images +
                           ";target2=" + kMadeUp + "' --validate-targets ";
  expect_refused("train" + kDigits + sets + "all",
                 "target1 has no labels to be scored by; give its data labels, or name other "
                 "domains in --validate-targets");
  expect_refused("train" + kDigits + sets + "target3",
                 "\"target3\" is not a target; use all, or some of target1,target2");
  expect_refused("train" + kDigits + sets + "target2 --validation-fraction 0",
                 "give --validation-fraction 0.1, say");
  expect_refused("train cnn2d --steps 1 --data " + kMadeUp + " --validate-targets all",
                 "the network reads the source alone");
}

TEST_F(DomainsCli, RefusesWhatDoesNotFitWithARemedy) {
  expect_refused("plan unet2d:base=2,depth=2 --domains 1",
                 "use a model for several domains, such as dsn:targets=2, or leave --domains out");
  expect_refused("plan dann:base=2 --domains 2", "use --domains 1");
  expect_refused("plan" + kDigits + "--domains 1 --workers 2",
                 "[--workers] 2 workers do not fit 1 replica and 3 stages of 3 workers in all");
  expect_refused("train" + kDigits + "--data " + kMadeUp + " --steps 1",
                 "there is no data for target1");
  expect_refused("train" + kDigits + "--steps 1 --data 'source=" + kMadeUp + ";target1=" + kMadeUp +
                     ";target2=folder:/nowhere'",
                 "[--data] target2: ");
  expect_refused("train" + kDigits + "--steps 1 --data 'source=" + kMadeUp + ";target1=" + kMadeUp +
                     ";target2=" + kMadeUp + ",size=8x8'",
                 "[--data] target2: [data] an image is 1x8x8");
  expect_refused("plan" + kDigits + "--micro-batches 2 --norm micro-batch",
                 "this loss needs the predictions of the whole batch");
  expect_refused(
      "plan dsn:similarity=mmd,targets=1 --micro-batches 2 --pipeline-schedule gpipe "
      "--norm micro-batch",
      "this operator takes the statistics of the whole batch");
}

}  // namespace
