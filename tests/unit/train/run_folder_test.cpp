// run.json says what ran where, and a folder that cannot be written is refused before training.

#include "tessera/train/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tessera/files/temporary_file.h"
#include "tessera/train/machine.h"
#include "tessera/train/metrics_file.h"
#include "tessera/train/run_results.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::run_folder_test {
namespace {

RunDescription description() {
  return {.config_json = R"({"train": {"epochs": 3}})",
          .placement_json = R"({"data": 2})",
          .num_ranks = 2,
          .transport = "threads",
          .seed = 18'000'000'000'000'000'000ull,
          .resumed_at = std::nullopt};
}

nlohmann::json read_run(const RunFolder& folder) {
  return nlohmann::json::parse(read_bytes(folder.file("run.json")));
}

/// While alive, no file may grow beyond `bytes`: writes fail as they do on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST(RunFolder, IsMadeWithItsParents) {
  const ScratchFolder scratch;
  const RunFolder folder(scratch / "a/b/run");
  EXPECT_FALSE(folder.holds_run());
  EXPECT_TRUE(std::filesystem::is_empty(scratch / "a/b/run")) << "the trial file must be gone";
  EXPECT_EQ(folder.file("run.json"), scratch / "a/b/run/run.json");
}

TEST(RunFolder, DescribesTheRun) {
  const ScratchFolder scratch;
  const RunFolder folder(scratch / "run");
  folder.write_description(description());
  EXPECT_TRUE(folder.holds_run());
  const nlohmann::json json = read_run(folder);
  EXPECT_EQ(json["config"]["train"]["epochs"], 3);
  EXPECT_EQ(json["placement"]["data"], 2);
  EXPECT_EQ(json["num_ranks"], 2);
  EXPECT_EQ(json["transport"], "threads");
  EXPECT_EQ(json["seed"], 18'000'000'000'000'000'000ull);
  EXPECT_EQ(json["started"].get<std::string>().size(), std::string("2024-01-01T00:00:00Z").size());
  for (const char* key : {"tessera", "libtorch", "compiler"})
    EXPECT_FALSE(json["versions"][key].get<std::string>().empty()) << key;
  for (const char* key : {"hostname", "cpu_model"})
    EXPECT_FALSE(json["machine"][key].get<std::string>().empty()) << key;
  EXPECT_GE(json["machine"]["cores"], 1);
  EXPECT_GT(json["machine"]["memory_bytes"], 1 << 20);
  EXPECT_FALSE(json.contains("resumed"));
}

TEST(RunFolder, RemembersEveryStart) {
  const ScratchFolder scratch;
  const RunFolder folder(scratch / "run");
  RunDescription start = description();
  folder.write_description(start);
  start.resumed_at = 40;
  start.placement_json = R"({"data": 4})";
  folder.write_description(start);
  start.resumed_at = 80;
  folder.write_description(start);
  const nlohmann::json json = read_run(folder);
  EXPECT_EQ(json["placement"]["data"], 4);
  EXPECT_EQ(json["first_start"]["placement"]["data"], 2);
  EXPECT_FALSE(json["first_start"].contains("resumed"));
  ASSERT_EQ(json["resumed"].size(), 2u);
  EXPECT_EQ(json["resumed"][0]["at_step"], 40);
  EXPECT_EQ(json["resumed"][1]["at_step"], 80);
}

TEST(RunFolder, ResumesOverADescriptionThatCannotBeRead) {
  const ScratchFolder scratch;
  const RunFolder folder(scratch / "run");
  write_bytes(folder.file("run.json"), "{\"conf");
  RunDescription start = description();
  start.resumed_at = 5;
  folder.write_description(start);
  EXPECT_EQ(read_run(folder)["resumed"].size(), 1u);
  EXPECT_FALSE(read_run(folder).contains("first_start"));
}

TEST(RunFolder, ResumesOverADescriptionOfAnotherForm) {
  const ScratchFolder scratch;
  const RunFolder folder(scratch / "run");
  RunDescription start = description();
  start.resumed_at = 5;
  for (const std::string& other :
       {std::string("3"), std::string("[]"), std::string(R"({"resumed": 3})"),
        std::string(R"({"resumed": {"at": 1}})"), std::string(R"({"resumed": [], "resumed": []})"),
        std::string(R"({"resumed": "text", "first_start": 7})"), std::string(200'000, '[')}) {
    write_bytes(folder.file("run.json"), other);
    folder.write_description(start);
    EXPECT_EQ(read_run(folder)["resumed"].size(), 1u) << other.substr(0, 60);
  }
}

/// Another run may have it: a second start must not come in the way of the first one's run.json.
TEST(RunFolder, IsNotWrittenToBeforeItIsDescribed) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "run");
  const TemporaryFile in_use(scratch / "run/run.json");
  const RunFolder folder(scratch / "run");
  expect_refusal([&] { folder.write_description(description()); }, "another process is writing it");
}

TEST(RunFolder, RefusesADescriptionThatIsNotAFile) {
  const ScratchFolder scratch;
  const RunFolder folder(scratch / "run");
  ASSERT_EQ(::mkfifo(folder.file("run.json").c_str(), 0600), 0);
  RunDescription start = description();
  start.resumed_at = 5;
  expect_refusal([&] { folder.write_description(start); },
                 "[run.json] cannot read " + folder.file("run.json") + ": it is a pipe");
}

TEST(RunFolder, RefusesAFolderThatCannotBe) {
  const ScratchFolder scratch;
  write_bytes(scratch / "file", "x");
  expect_refusal([&] { RunFolder(scratch / "file"); }, "cannot make the folder");
  expect_refusal([&] { RunFolder(scratch / "file/run"); }, "Not a directory");
  expect_refusal([&] { RunFolder("/proc/tessera/run"); }, "--run gives the run's folder");
  expect_refusal([&] { RunFolder(""); }, "the path is empty");
}

TEST(RunFolder, RefusesAFolderWithoutRights) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "closed");
  std::filesystem::permissions(scratch / "closed", std::filesystem::perms::owner_read);
  const RunFolder folder(scratch / "closed");
  expect_refusal([&] { folder.write_description(description()); }, "Permission denied");
}

TEST(RunFolder, AFullDiskLeavesTheOldFile) {
  const ScratchFolder scratch;
  const RunFolder folder(scratch / "run");
  write_bytes(folder.file("run.json"), "old");
  RunDescription large = description();
  large.config_json = fmt::format("{{\"text\": \"{}\"}}", std::string(100'000, 'x'));
  std::string message;
  {
    const FileSizeLimit limit(5000);
    message = refusal([&] { folder.write_description(large); });
  }
  EXPECT_TRUE(has(message, folder.file("run.json") + ": File too large")) << message;
  EXPECT_TRUE(has(message, "a run that is started again resumes")) << message;
  EXPECT_EQ(read_bytes(folder.file("run.json")), "old");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"run.json"});
}

TEST(RunFolder, MetricsOnAFullDiskAreAnErrorAndGoOnAfterIt) {
  const ScratchFolder scratch;
  const std::string path = scratch / "metrics.csv";
  int64_t written = 0;
  {
    const FileSizeLimit limit(1000);
    MetricsFile metrics(path, {"loss"}, std::nullopt);
    expect_refusal(
        [&] {
          while (written < 1000) {
            metrics.append(written + 1, {0.25});
            ++written;
          }
        },
        "cannot write to " + path);
  }
  ASSERT_GT(written, 10);
  MetricsFile resumed(path, {"loss"}, written - 3);
  for (int64_t step = written - 2; step <= written + 5; ++step) resumed.append(step, {0.25});
  std::string expected = "step,loss\n";
  for (int64_t step = 1; step <= written + 5; ++step) expected += fmt::format("{},0.25\n", step);
  EXPECT_EQ(read_bytes(path), expected);
}

/// While alive, this is the working folder.
class WorkingFolder {
 public:
  explicit WorkingFolder(const std::string& path) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(path);
  }
  ~WorkingFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

TEST(NewRunFolder, IsNamedAfterTheModelAndTheDay) {
  const ScratchFolder scratch;
  const WorkingFolder here(scratch.path());
  const std::string first = new_run_folder("unet2d:base=8,depth=3");
  EXPECT_TRUE(first.starts_with("runs/unet2d-20") && first.ends_with("-1")) << first;
  const std::string second = new_run_folder("unet2d:base=16");
  EXPECT_EQ(second, first.substr(0, first.size() - 1) + "2");
  EXPECT_TRUE(new_run_folder("nets/lung.v2.pt").starts_with("runs/lung.v2-20"));
  EXPECT_TRUE(new_run_folder("").starts_with("runs/run-20"));
  EXPECT_TRUE(std::filesystem::is_directory(second));
}

/// Also where all ask at once.
TEST(NewRunFolder, IsNobodyElses) {
  const ScratchFolder scratch;
  const WorkingFolder here(scratch.path());
  constexpr int kRuns = 16;
  std::vector<std::string> paths(kRuns);
  std::vector<std::thread> runs;
  for (std::string& path : paths) runs.emplace_back([&path] { path = new_run_folder("net"); });
  for (std::thread& run : runs) run.join();
  EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), paths.size());
  EXPECT_EQ(names_in("runs").size(), paths.size());
}

TEST(NewRunFolder, ThatCannotBeMadeIsRefused) {
  const ScratchFolder scratch;
  const WorkingFolder here(scratch.path());
  write_bytes("runs", "a file");
  expect_refusal([] { new_run_folder("net"); }, "--run gives the run's folder");
}

TEST(SameSettings, AreComparedWithACheckpointsRecord) {
  TrainConfig config;
  config.model = "unet2d";
  config = resolved(config);
  TrainingState checkpoint;
  EXPECT_NO_THROW(check_same_settings("runs/a", checkpoint, config)) << "nothing is recorded";
  checkpoint.metadata["config"] = to_json(config);
  config.epochs = 99;
  EXPECT_NO_THROW(check_same_settings("runs/a", checkpoint, config));
  config.learning_rate = 0.5;
  config.seed = 7;
  const std::string message = refusal([&] { check_same_settings("runs/a", checkpoint, config); });
  EXPECT_EQ(
      message,
      "[--run] runs/a holds a run with other settings:\n  --seed was 1, is 7\n  "
      "--learning-rate was 0.01, is 0.5\nresume it with the settings that it has, or give this "
      "run another folder with --run");
}

TEST(ConfigOfRun, IsWhatTheRunWasTold) {
  const ScratchFolder scratch;
  TrainConfig config;
  config.model = "unet2d:base=8";
  config.space = "2x2";
  config.learning_rate = 0.1 + 0.2;
  config.channels_last = true;
  config.seed = 7;
  EXPECT_EQ(config_from_json(to_json(config)), config);
  EXPECT_EQ(config_from_json("{}"), TrainConfig()) << "an earlier version may have written less";
  const RunFolder folder(scratch / "run");
  EXPECT_FALSE(is_run_folder(scratch / "run"));
  RunDescription described = description();
  described.config_json = to_json(config);
  folder.write_description(described);
  EXPECT_TRUE(is_run_folder(scratch / "run"));
  EXPECT_EQ(config_of_run(scratch / "run"), config);
  for (const char* text : {"", "{}", "[]", R"({"config": {"train": {"seed": "one"}}})",
                           R"({"config": {"placement": {"threads": 0}}})"}) {
    write_bytes(scratch / "run/run.json", text);
    expect_refusal([&] { config_of_run(scratch / "run"); },
                   "does not say how the run was configured");
  }
}

TEST(WeightsTarget, IsAFileOrTheBest) {
  EXPECT_FALSE(weights_target("w.safetensors").best);
  EXPECT_EQ(weights_target("w.safetensors").path, "w.safetensors");
  EXPECT_TRUE(weights_target("best").best);
  EXPECT_EQ(weights_target("best").path, "");
  EXPECT_TRUE(weights_target("best:net.pt").best);
  EXPECT_EQ(weights_target("best:net.pt").path, "net.pt");
  EXPECT_FALSE(weights_target("").best);
}

TEST(RunResults, ComeBackAsTheyWere) {
  RunResults results;
  EXPECT_TRUE(std::isnan(parse_results(to_json(results)).loss));
  EXPECT_FALSE(parse_results(to_json(results)).validation);
  results.loss = 0.1 + 0.2;
  results.validation.emplace();
  results.validation->loss = 1.0 / 3;
  results.validation->names = scores_of(ScoredTask::kPixelClasses, 2);
  results.validation->scores.mean_iou = 2.0 / 7;
  const RunResults read = parse_results(to_json(results));
  EXPECT_EQ(read.loss, results.loss);
  ASSERT_TRUE(read.validation);
  EXPECT_EQ(read.validation->names.size(), 3u);
  EXPECT_EQ(read.validation->loss, results.validation->loss);
  EXPECT_EQ(read.validation->scores.mean_iou, results.validation->scores.mean_iou);
  EXPECT_EQ(to_string(*read.validation), "loss 0.3333, accuracy 0.000, mean IoU 0.286, Dice 0.000");
  results.validation->names = scores_of(ScoredTask::kImageClasses, 10);
  results.validation->scores.top5 = 0.5;
  EXPECT_EQ(to_string(*parse_results(to_json(results)).validation),
            "loss 0.3333, accuracy 0.000, top-5 0.500");
  results.validation->names.clear();
  EXPECT_EQ(to_string(*parse_results(to_json(results)).validation), "loss 0.333333");
  for (const char* text :
       {"", "7", "{}", "[1]", R"({"loss": "0"})", R"({"loss": 0, "validation": 3})",
        R"({"loss": 0, "validation": {"loss": 1, "accuracy": []}})"})
    EXPECT_THROW(parse_results(text), InvalidInput) << text;
}

}  // namespace
}  // namespace tessera::run_folder_test
