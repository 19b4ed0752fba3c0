// Devices, as users see them, on a machine with or without a GPU.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/program.h"

namespace devices_cli_test {
namespace {

const std::string kSmall = "unet2d:base=2,depth=2 --input 1x3x16x16 ";

nlohmann::json devices() {
  const Outcome outcome = tessera("devices --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

bool has_gpu() { return devices()["devices"].size() > 1; }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DevicesCli, ListsTheCpuFirstAndSaysWhyThereIsNoGpu) {
  const nlohmann::json listed = devices();
  EXPECT_EQ(listed["devices"][0]["name"], "cpu");
  EXPECT_GT(listed["devices"][0]["bytes"], 0);
  EXPECT_EQ(listed["why_no_gpu"] == "", listed["devices"].size() > 1);
  const Outcome table = tessera("devices");
  EXPECT_EQ(table.exit_code, 0);
  EXPECT_TRUE(table.out.starts_with("device")) << table.out;
  EXPECT_TRUE(has(table.out, "\ncpu ")) << table.out;
  EXPECT_EQ(has(table.out, "no GPU: "), !has_gpu()) << table.out;
}

TEST(DevicesCli, AGpuThatIsNotThereIsRefusedByEveryCommand) {
  const size_t gpus = devices()["devices"].size() - 1;
  const std::string absent = "--device cuda:" + std::to_string(gpus);
  const std::vector<std::string> commands{"verify " + kSmall,
                                          "bench " + kSmall,
                                          "plan " + kSmall,
                                          "train no_such_model ",
                                          "predict no_such_model --images x --output y.npy ",
                                          "evaluate no_such_model --data x "};
  for (const std::string& command : commands) {
    const Outcome outcome = tessera(command + absent);
    EXPECT_EQ(outcome.exit_code, 2) << command;
    EXPECT_TRUE(has(outcome.err, "tessera: [--device] cuda")) << command << outcome.err;
    EXPECT_EQ(outcome.out, "") << command;
  }
  if (gpus > 0) return;
  const std::string reason = devices()["why_no_gpu"];
  EXPECT_EQ(tessera("plan " + kSmall + "--device cuda").err,
            "tessera: [--device] cuda: " + reason + "\n");
}

TEST(DevicesCli, ReportsNameTheDevice) {
  const auto json = [](const std::string& arguments) {
    const Outcome outcome = tessera(arguments + " --device cpu --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  };
  const nlohmann::json timed = json("bench --iterations 1 --warmup 0 --space 2x1 " + kSmall);
  EXPECT_EQ(timed["devices"], (nlohmann::json{"cpu", "cpu"}));
  EXPECT_FALSE(timed.contains("device_bytes"));
  EXPECT_EQ(json("verify --steps 1 " + kSmall)["device"], "cpu");
  EXPECT_EQ(json("plan " + kSmall)["device"], "cpu");
}

TEST(DevicesCli, ARunSaysWhereItRanAndMayGoOnElsewhere) {
  const std::string run = testing::TempDir() + "tessera_devices_" + std::to_string(getpid());
  const std::string train = "train " + kSmall + "--data synthetic:samples=8,classes=2 --run " + run;
  ASSERT_EQ(tessera(train + " --steps 2 --device cpu").exit_code, 0);
  const Outcome resumed = tessera(train + " --steps 3 --device auto --deterministic");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_TRUE(has(resumed.err, "resumed at step 2")) << resumed.err;
  const nlohmann::json record = nlohmann::json::parse(read_all(run + "/run.json"));
  EXPECT_EQ(record["first_start"]["device"], "cpu");
  EXPECT_EQ(record["config"]["placement"]["device"], "auto");
  EXPECT_TRUE(record["resumed"][0].contains("device"));
  const Outcome coarser = tessera(train + " --steps 4 --tf32");
  EXPECT_EQ(coarser.exit_code, 2);
  EXPECT_TRUE(has(coarser.err, "--tf32 was false, is true")) << coarser.err;
  std::filesystem::remove_all(run);
}

/// A key of a file, like any other.
TEST(DevicesCli, AFileMayNameTheDevice) {
  const std::string file = testing::TempDir() + "tessera_device_" + std::to_string(getpid());
  std::ofstream(file + ".toml") << "[placement]\ndevice = \"gpu\"\ntf32 = true\n";
  const Outcome outcome = tessera("plan " + kSmall + "--config " + file + ".toml");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_TRUE(has(outcome.err, "[--device] gpu is not known; use cpu, cuda, cuda:0 or auto"))
      << outcome.err;
  std::remove((file + ".toml").c_str());
}

}  // namespace
}  // namespace devices_cli_test
