// The program as a user meets it: results, JSON, exit codes and messages.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/program.h"

namespace {

#ifdef TESSERA_HAS_PNG
constexpr bool kPictures = true;
#else
constexpr bool kPictures = false;
#endif

TEST(Cli, HelpIsThereForEveryCommand) {
  EXPECT_EQ(tessera("--help").exit_code, 0);
  EXPECT_EQ(tessera("--version").exit_code, 0);
  for (const char* command : {"models", "verify", "plan", "bench", "inspect", "train", "predict"}) {
    const Outcome outcome = tessera(std::string(command) + " --help");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out.find("--json"), std::string::npos) << command;
  }
}

TEST(Cli, ModelsListsTheZoo) {
  const nlohmann::json models = nlohmann::json::parse(tessera("models --json").out);
  EXPECT_GE(models.size(), 6u);
  EXPECT_NE(tessera("models").out.find("unet3d"), std::string::npos);
}

TEST(Cli, VerifyProvesAPlacement) {
  const Outcome outcome = tessera(
      "verify unet2d:base=2,depth=3,classes=4,norm=none --input 1x3x24x20 --space 2x2 --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["dtype"], "float64");
  EXPECT_EQ(json["ok"], true);
  for (const char* key : {"loss_rel", "output_rel", "input_grad_rel", "param_grad_rel",
                          "updated_param_rel", "buffer_rel"})
    EXPECT_LE(json[key].get<double>(), 1e-10) << key;
}

TEST(Cli, VerifyTakesFloat32AndAdamw) {
  EXPECT_EQ(tessera("verify cnn2d:base=2,depth=2 --input 2x3x24x20 --space 2x1 --dtype float32")
                .exit_code,
            0);
  EXPECT_EQ(tessera("verify cnn2d:base=2,depth=2 --input 2x3x24x20 --workers 3 --optimiser adamw")
                .exit_code,
            0);
}

/// With a CPU that has it, or pretends to lack it.
TEST(Cli, RunsBf16WhereTheCpuMultipliesIt) {
  const std::string command =
      "verify cnn2d:base=2,depth=2 --input 2x3x24x20 --space 2x1 --dtype bf16";
  const Outcome outcome = tessera(command);
  EXPECT_TRUE(outcome.exit_code == 0 || outcome.err.find("AVX512-BF16") != std::string::npos);
  setenv("TESSERA_CPU_WITHOUT_BF16", "1", 1);
  const Outcome elsewhere = tessera(command);
  unsetenv("TESSERA_CPU_WITHOUT_BF16");
  EXPECT_EQ(elsewhere.exit_code, 2);
  EXPECT_NE(elsewhere.err.find("AVX512-BF16; use float32"), std::string::npos) << elsewhere.err;
}

TEST(Cli, PlanAndBenchAgreeToTheByte) {
  const std::string job =
      " unet2d:base=4,depth=3 --input 2x3x40x36 --replicas 2 --space 2x1 --json ";
  const nlohmann::json plan = nlohmann::json::parse(tessera("plan" + job).out);
  const nlohmann::json bench =
      nlohmann::json::parse(tessera("bench" + job + "--iterations 2 --warmup 1").out);
  for (const char* key : {"peak_value_bytes", "arena_bytes", "scratch_bytes", "parameter_bytes",
                          "bytes_sent", "messages", "plan"})
    EXPECT_EQ(plan[key], bench[key]) << key;
  EXPECT_GT(plan["scratch_bytes"][0], 0);
  for (const char* key : {"median_ms", "p10_ms", "p90_ms", "workspace_bytes", "peak_rss_bytes"})
    EXPECT_TRUE(bench.contains(key)) << key;
}

TEST(Cli, BenchOnAPretendedNetworkTellsWhatIsHidden) {
  const std::string job =
      "bench cnn2d:base=4,depth=2 --input 1x3x32x32 --space 2x1 --delay 100,1GB ";
  const nlohmann::json bench =
      nlohmann::json::parse(tessera(job + "--iterations 2 --warmup 0 --json").out);
  EXPECT_GE(bench["hidden_share"], 0);
  EXPECT_LE(bench["hidden_share"], 1);
  EXPECT_GT(bench["transfer_ms"][1], 0);
  EXPECT_LE(bench["exposed_ms"][1], bench["transfer_ms"][1]);
  const Outcome table = tessera(job + "--iterations 2 --warmup 0");
  EXPECT_NE(table.out.find("% of it hidden"), std::string::npos) << table.out;
}

/// Names that a command had before all commands agreed on them.
TEST(Cli, OldNamesOfOptionsStillWork) {
  const std::string job = "plan unet2d:base=4,depth=3,norm=none --input 4x3x40x36 --json ";
  const Outcome named =
      tessera(job + "--replicas 2 --stages 2 --micro-batches 2 --pipeline-schedule gpipe");
  ASSERT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(tessera(job + "--data 2 --stages 2 --micro-batches 2 --schedule gpipe").out, named.out);
  EXPECT_EQ(tessera("plan --help").out.find("--schedule"), std::string::npos);
}

TEST(Cli, EveryCommandReadsAConfiguration) {
  const std::string file = testing::TempDir() + "tessera_cli_config.toml";
  std::ofstream(file) << "[model]\nname = 'unet2d:base=4,depth=3'\ninput = '2x3x40x36'\n"
                         "[train]\nepochs = 3\n[placement]\nreplicas = 2\nspace = '2x1'\n";
  const Outcome written = tessera("plan --json --config " + file);
  const Outcome typed =
      tessera("plan unet2d:base=4,depth=3 --input 2x3x40x36 --replicas 2 --space 2x1 --json");
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.out, typed.out);
}

/// Also where it is used only long after it was read.
TEST(Cli, ABadValueOfAFileIsSaidWithTheFile) {
  const std::string config = testing::TempDir() + "tessera_cli_bad.toml";
  std::ofstream(config) << "[model]\nname = 'nosuchnet'\n";
  const Outcome unknown = tessera("plan --config " + config);
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find(config), std::string::npos) << unknown.err;
  const std::string plan = testing::TempDir() + "tessera_cli_bad.json";
  std::ofstream(plan) << R"({"space": [64, 1]})";
  const Outcome large = tessera("plan unet2d:base=4 --input 1x3x32x32 --plan " + plan);
  EXPECT_EQ(large.exit_code, 2);
  EXPECT_NE(large.err.find(plan + ": "), std::string::npos) << large.err;
  EXPECT_NE(large.err.find("use at most 32 parts"), std::string::npos) << large.err;
}

/// The baseline is one worker of this process, wherever the others were.
TEST(Cli, BenchComparesProcessesWithOneWorker) {
  const Outcome outcome = tessera(
      "bench cnn2d:base=4,depth=2 --input 2x3x32x32 --space 2x1 --launch mpi --baseline "
      "--iterations 2 --json");
  if (outcome.err.find("libopenmpi") != std::string::npos) GTEST_SKIP() << "no MPI";
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"efficiency\""), std::string::npos) << outcome.out;
}

TEST(Cli, PlanDrawsTheGridAndPrintsPrograms) {
  const Outcome picture = tessera("plan unet2d:base=4,depth=3 --input 1x3x64x64 --space 2x2");
  EXPECT_NE(picture.out.find("rank 3"), std::string::npos);
  EXPECT_NE(picture.out.find("32x32"), std::string::npos);
  const Outcome program =
      tessera("plan unet2d:base=4,depth=3 --input 1x3x64x64 --space 2x2 --program --rank 2");
  EXPECT_NE(program.out.find("StartTransfer"), std::string::npos);
}

TEST(Cli, PlanFileIsAPlacement) {
  const std::string file = testing::TempDir() + "tessera_plan.json";
  std::ofstream(file) << R"({"data": 1, "space": [2, 3], "pieces": [1, 2]})";
  const Outcome outcome =
      tessera("plan cnn2d:base=2,depth=2 --input 1x3x32x36 --json --plan " + file);
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["ranks"], 6) << outcome.err;
}

TEST(Cli, TrainsResumesAndPredicts) {
  const std::string folder = testing::TempDir() + "tessera_cli_" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/run.toml") << "[model]\nname = \"unet2d:base=2,depth=2,classes=3\"\n"
                                         "input = \"2x1x32x24\"\n"
                                         "[data]\nsource = \"synthetic:samples=8,classes=3\"\n";
  const std::string train = "train --config " + folder + "/run.toml --space 2x1 --run " + folder +
                            "/run --save-weights " + folder + "/w.safetensors --json ";
  const Outcome first = tessera(train + "--steps 3");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(nlohmann::json::parse(first.out)["steps"], 3);
  const Outcome second = tessera(train + "--steps 5");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_NE(second.err.find("resumed at step 3"), std::string::npos) << second.err;
  for (const char* file : {"/run/run.json", "/run/metrics.csv", "/w.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(folder + file)) << file;

  const Outcome prediction =
      tessera("predict unet2d:base=2,depth=2,classes=3 --input 1x1x32x24 --space 1x2 --weights " +
              folder + "/w.safetensors --images synthetic:samples=2,classes=3 --output " + folder +
              "/classes.npy --probabilities " + folder + "/p.npy" +
              (kPictures ? " --picture " + folder + "/p.png" : ""));
  EXPECT_EQ(prediction.exit_code, 0) << prediction.err;
  EXPECT_GT(std::filesystem::file_size(folder + "/classes.npy"), 2u * 32 * 24);
  EXPECT_GT(std::filesystem::file_size(folder + "/p.npy"), 4u * 2 * 3 * 32 * 24);
  EXPECT_EQ(std::filesystem::exists(folder + "/p.png"), kPictures);
  std::filesystem::remove_all(folder);
}

struct Refusal {
  std::string arguments;
  int exit_code;
  std::string part;  // of the message
};
void PrintTo(const Refusal& refusal, std::ostream* stream) { *stream << refusal.arguments; }

class Refusals : public testing::TestWithParam<Refusal> {};

TEST_P(Refusals, AreClear) {
  const Outcome outcome = tessera(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, GetParam().exit_code) << outcome.err;
  EXPECT_NE((outcome.err + outcome.out).find(GetParam().part), std::string::npos) << outcome.err;
}

const std::string kNet = "unet2d:base=2,depth=3 ";

INSTANTIATE_TEST_SUITE_P(
    BadInput, Refusals,
    testing::Values(
        Refusal{"", 2, ""}, Refusal{"train-me", 2, ""}, Refusal{"verify", 2, "MODEL"},
        Refusal{"verify unet7d", 2, "unet2d"}, Refusal{"verify unet2d:bass=3", 2, "base"},
        Refusal{"verify unet2d:base=x", 2, "base"}, Refusal{"verify unet2d:base=0", 2, "base"},
        Refusal{"verify unet2d:norm=layer", 2, "batch"},
        Refusal{"verify " + kNet + "--input 1x3x32", 2, "axes"},
        Refusal{"verify " + kNet + "--input 1x3x32x32x32", 2, "axes"},
        Refusal{"verify " + kNet + "--input 1x3x0x32", 2, "from 1 on"},
        Refusal{"verify " + kNet + "--input 1x3x-4x32", 2, "from 1 on"},
        Refusal{"verify " + kNet + "--input 1x3x32xfoo", 2, "--input"},
        Refusal{"verify " + kNet + "--input 1x3x99999999999x99999999999", 2, "2^62"},
        Refusal{"verify " + kNet + "--input 99999999999999999999x3x8x8", 2, "too large"},
        Refusal{"verify " + kNet + "--input 1x3x2x2", 2, "4"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --space 33x1", 2, "32 pixels"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --space 2", 2, "2 spatial axes"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --space 2x2x2", 2, "2 spatial axes"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --space 0x2", 2, "from 1 on"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --space 2x", 2, "--space"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --replicas 2", 2, "batch of 1"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --replicas 0", 2, "in [1, 65536]"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --workers -3", 2, "in [0, 65536]"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --workers 5000", 2, "5000"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --workers 3 --space 2x2", 2, "--workers"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --pieces 5000", 2, "5000"},
        Refusal{"verify " + kNet + "--input 1x3x32x32 --replicas 4 --workers 8", 2, "batch of 1"},
        Refusal{"plan " + kNet + "--input 1x3x32x32 --workers 1000000000000", 2, "in [0, 65536]"},
        Refusal{
            "predict " + kNet +
                "--input 1x3x64x64 --memory 10KiB --weights w --images synthetic --output o.npy",
            4, "limit"},
        Refusal{"verify " + kNet + "--dtype float16", 2, "float32, float64"},
        Refusal{"verify " + kNet + "--threads 0", 2, ""},
        Refusal{"verify " + kNet + "--steps 0", 2, ""},
        Refusal{"verify " + kNet + "--no-such-option", 2, "no-such-option"},
        Refusal{"plan " + kNet + "--plan /nonexistent.json", 2, "cannot read"},
        Refusal{"plan " + kNet + "--memory lots", 2, "16GiB"},
        Refusal{"plan " + kNet + "--input 1x3x64x64 --memory 100KiB", 4, "limit"},
        Refusal{"verify " + kNet + "--input 1x3x64x64 --memory 100KiB", 4, "limit"},
        Refusal{"train unet2d --data nosuch:x --run /tmp/tessera_never", 2, "synthetic"},
        Refusal{"train --config /nonexistent.toml", 2, "nonexistent"},
        Refusal{"train unet2d:classes=2 --data synthetic:classes=4 --run /tmp/tessera_never", 2,
                "classes"},
        Refusal{"train unet2d --run /tmp/tessera_never", 2,
                "[--data] there is nothing to train on"},
        Refusal{"train unet2d --steps 0 --run /tmp/tessera_never", 2, "steps"},
        Refusal{"train cnn2d --data synthetic --run /tmp/tessera_never", 2, "per sample"},
        Refusal{"predict unet2d --images synthetic --output /tmp/o.npy", 2, "--weights"},
        Refusal{"predict " + kNet +
                    "--images synthetic --output /tmp/o.npy --weights /nonexistent.safetensors",
                2, "nonexistent"},
        Refusal{"bench " + kNet + "--delay fast", 2, "such as 200 or 200,1GB"},
        Refusal{"bench " + kNet + "--delay -5", 2, "give 0 to 1000000000 microseconds"},
        Refusal{"bench " + kNet + "--delay 5,quick", 2, "[--delay]"},
        Refusal{"bench unet2d --input 1x3x60000x60000", 4, "free"},
        Refusal{"bench unet2d --input 1x3x1024x1024 --space 2x2 --memory 900MiB", 4,
                "use more workers"}));

const std::string kPlain = "unet2d:base=2,depth=3,norm=none --input 3x3x24x20 ";

INSTANTIATE_TEST_SUITE_P(
    BadStages, Refusals,
    testing::Values(
        Refusal{"verify " + kPlain + "--stages 2 --pipeline-schedule 2f2b", 2, "zero-bubble"},
        Refusal{"verify " + kPlain + "--stages 0", 2, "[--stages] 0 must be in [1, 4096]"},
        Refusal{"verify " + kPlain + "--stages 99", 2, "nodes for 99 stages"},
        Refusal{"verify " + kPlain + "--stages 2 --space 2x1,1x1,1x1", 2, "3 grids for 2 stages"},
        Refusal{"verify " + kPlain + "--stages 2 --workers 3", 2, "[--workers]"},
        Refusal{"verify " + kPlain + "--micro-batches 4", 2,
                "4 micro-batches x data 1 is more than the batch of 3"},
        Refusal{"verify " + kPlain + "--stages 2 --micro-batches 3 --pipeline-schedule interleaved",
                2, "give a number of micro-batches that 2 divides"},
        Refusal{"verify " + kPlain + "--stages 2 --micro-batches 3 --loss dice", 2, "gpipe"},
        Refusal{"verify " + kNet + "--input 4x3x24x20 --stages 2 --micro-batches 2", 2,
                "--norm micro-batch"},
        Refusal{"plan " + kPlain + "--stages 2 --plan p.json", 2, "excludes"}));

}  // namespace
