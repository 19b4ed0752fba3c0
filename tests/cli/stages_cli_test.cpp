// Pipeline stages as a user meets them: proofs, pictures, timelines, traces and the files between.

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/program.h"

namespace {

using nlohmann::json;

/// A U-Net on three stages, with two micro-batches.
const std::string kModel = " unet2d:base=2,depth=3 --input 4x3x24x20 ";
const std::string kNorm = kModel + "--norm micro-batch ";
const std::string kStages = kNorm + "--stages 3 --micro-batches 2 ";

/// A folder of the test's own.
class StagesCli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tessera_stages_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

  std::string folder_;
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(StagesCli, VerifyProvesReplicasOfStagesOnGridsInPieces) {
  const Outcome outcome = tessera(
      "verify" + kNorm + "--replicas 2 --stages 2 --space 2x1 --pieces 2 --micro-batches 2 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report["ranks"], 8);
  EXPECT_EQ(report["dtype"], "float64");
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(report["plan"]["stages"], (json{{2, 1}, {2, 1}}));
  EXPECT_EQ(report["plan"]["micro_batches"], 2);
  EXPECT_EQ(report["plan"]["pieces"].size(), 2u);
  for (const char* key : {"loss_rel", "output_rel", "input_grad_rel", "param_grad_rel",
                          "updated_param_rel", "buffer_rel"})
    EXPECT_LE(report[key].get<double>(), 1e-10) << key;
}

TEST_F(StagesCli, VerifyTakesGridsSchedulesAndBalances) {
  for (const char* options :
       {"--stages 2 --space 2x1,1x1 --micro-batches 2 --balance layers --pipeline-schedule gpipe",
        "--stages 2 --micro-batches 4 --pipeline-schedule interleaved --chunks 3"}) {
    const Outcome outcome = tessera("verify" + kNorm + options);
    EXPECT_EQ(outcome.exit_code, 0) << options << outcome.err << outcome.out;
  }
}

const std::string kLayers =
    " resnet_chain2d:blocks=8,width=2 --input 2x3x9x8 --layers 2 --multigrid coarsening=2";

TEST_F(StagesCli, VerifySaysHowFarMultigridIsFromTheNetwork) {
  const auto error_with = [](const std::string& more) {
    const Outcome outcome = tessera("verify" + kLayers + more + " --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const json report = json::parse(outcome.out);
    EXPECT_EQ(report["ok"], true);
    return report["multigrid_error"]["gradient"].get<double>();
  };
  EXPECT_GT(error_with(",forward=1"), 1e-6);
  EXPECT_EQ(error_with(",forward=2,backward=2"), 0);
  const Outcome table = tessera("verify" + kLayers);
  EXPECT_TRUE(holds(table.out, "approximate: multigrid on one worker differs")) << table.out;
  EXPECT_TRUE(holds(table.out, "(residual)")) << table.out;
  EXPECT_FALSE(holds(table.out, "their gradients jump by")) << table.out;
  const Outcome both = tessera("verify" + kLayers + ",forward=1,measure=both");
  EXPECT_TRUE(holds(both.out, "their gradients jump by")) << both.out;
}

TEST_F(StagesCli, BenchSaysWhatTheSweepsLeave) {
  const auto residual_with = [](const std::string& more, const char* name) {
    const Outcome outcome = tessera("bench" + kLayers + more + " --iterations 1 --json");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out)[name].get<double>();
  };
  EXPECT_GT(residual_with(",forward=1", "multigrid_residual"), 0);
  EXPECT_EQ(residual_with(",forward=2", "multigrid_residual"), 0);
  EXPECT_GT(residual_with(",backward=1,measure=both", "multigrid_gradient_residual"), 0);
  EXPECT_EQ(residual_with(",backward=2,measure=both", "multigrid_gradient_residual"), 0);
}

TEST_F(StagesCli, PlanDrawsTheSweeps) {
  const Outcome outcome = tessera("plan" + kLayers + ",forward=1,relax=F");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(holds(outcome.out, "forward, 1 V-cycle: ")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "\n0 | 0000")) << outcome.out;
}

/// What messages take is part of the step where one says so: a state goes there, a gradient comes
/// back.
TEST_F(StagesCli, TheTimelineCountsMessages) {
  const auto seconds_with = [&](const std::string& more) {
    const Outcome outcome =
        tessera("plan" + kLayers + ",forward=1,relax=F --timeline --width 10" + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const size_t at = outcome.out.find("\nstep ") + 6, end = outcome.out.find(',', at);
    const std::string step = outcome.out.substr(at, end - at);
    const double scale = holds(step, "us") ? 1e-6 : holds(step, "ms") ? 1e-3 : 1;
    return scale * std::stod(step);
  };
  const double at_once = seconds_with("");
  EXPECT_GE(seconds_with(" --message-latency 10000"), at_once + 0.019);
  EXPECT_GT(seconds_with(" --message-rate 0.001"), at_once);
}

TEST_F(StagesCli, LayersThatCannotBeSlicedAreRefused) {
  for (const char* bad : {"verify resnet18 --layers 2 --multigrid levels=2",
                          "verify resnet_chain2d:blocks=8 --layers 2",
                          "verify resnet_chain2d:blocks=8 --layers 3 --multigrid coarsening=4",
                          "verify resnet_chain2d --stages 2 --multigrid levels=2",
                          "verify resnet_chain2d --multigrid levels=two"})
    EXPECT_EQ(tessera(bad).exit_code, 2) << bad;
}

/// The lines of the picture: a resolution, and the stages of the nodes that run at it.
TEST_F(StagesCli, PlanDrawsTheStagesAndWhatCrossesThem) {
  const Outcome outcome = tessera("plan" + kStages);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  std::set<std::string> resolutions;
  std::set<char> stages;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string resolution;
    words >> resolution;
    if (!resolution.starts_with("1/")) continue;
    resolutions.insert(resolution);
    for (std::string word; words >> word;) stages.insert(word.begin(), word.end());
  }
  EXPECT_EQ(resolutions, (std::set<std::string>{"1/1", "1/2", "1/4"})) << outcome.out;
  EXPECT_EQ(stages, (std::set<char>{'0', '1', '2'})) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "values cross between stages")) << outcome.out;
  EXPECT_TRUE(holds(outcome.out, "stage 0 -> 2")) << outcome.out;  // the longest skip
  EXPECT_TRUE(holds(outcome.out, "over 1 stage\n")) << outcome.out;
  EXPECT_FALSE(holds(outcome.out, "\x1b[")) << "colours in a file";
}

TEST_F(StagesCli, PlanFilesCarryTheStages) {
  const Outcome written = tessera("plan" + kStages + "--json --write-plan " + path("plan.json"));
  ASSERT_EQ(written.exit_code, 0) << written.err;
  const json plan = json::parse(read_all(path("plan.json")));
  EXPECT_EQ(plan, json::parse(written.out)["plan"]);
  EXPECT_EQ(plan["stage_of"]["enc1.conv1"], 0);
  EXPECT_EQ(plan["stage_of"]["loss"], 2);
  const Outcome verified = tessera("verify" + kNorm + "--json --plan " + path("plan.json"));
  ASSERT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_EQ(json::parse(verified.out)["ranks"], 3);
  EXPECT_EQ(json::parse(verified.out)["plan"], plan);
  const Outcome without_norm = tessera("verify" + kModel + "--plan " + path("plan.json"));
  EXPECT_EQ(without_norm.exit_code, 2);
  EXPECT_TRUE(holds(without_norm.err, "--norm micro-batch")) << without_norm.err;
}

TEST_F(StagesCli, BalanceFilesSayWhichNodeRunsWhere) {
  const std::string stages = "plan" + kNorm + "--stages 2 --micro-batches 2 --json --balance ";
  const Outcome folded =
      tessera(stages + write("fold.json", R"([["*"], ["bottleneck.*", "up2"]])"));
  ASSERT_EQ(folded.exit_code, 0) << folded.err;
  for (const auto& [node, stage] : json::parse(folded.out)["plan"]["stage_of"].items())
    EXPECT_EQ(stage, node.starts_with("bottleneck") || node == "up2" ? 1 : 0) << node;
  const auto refused = [&](const std::string& file, const std::string& part) {
    const Outcome outcome = tessera(stages + file);
    EXPECT_EQ(outcome.exit_code, 2) << file;
    EXPECT_TRUE(holds(outcome.err, part)) << outcome.err;
  };
  refused(path("missing.json"), path("missing.json") + " is not a file that can be read");
  refused(write("text.json", "enc1 first, then the rest"), "text.json: it is not JSON");
  refused(write("part.json", R"([["enc1.*"], ["dec1.*"]])"), "node pool1 is in no stage");
}

TEST_F(StagesCli, PlanDrawsATimeline) {
  const Outcome outcome = tessera("plan" + kStages + "--timeline --width 60 --costs tasks");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"rank 0", "rank 1", "rank 2", "% idle", "<1<"})
    EXPECT_TRUE(holds(outcome.out, part)) << part << "\n" << outcome.out;
  EXPECT_FALSE(holds(outcome.out, "rank 3"));
}

/// Ranks that a trace has events of, and their names.
void expect_trace_of_all_ranks(const std::string& file) {
  const json trace = json::parse(read_all(file));
  std::set<int> ranks;
  std::set<std::string> names, tasks;
  for (const json& event : trace.at("traceEvents")) {
    if (event["ph"] == "M" && event["name"] == "thread_name") names.insert(event["args"]["name"]);
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    ranks.insert(event["tid"].get<int>());
    tasks.insert(event["cat"]);
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2}));
  EXPECT_TRUE(names.contains("rank 2 (stage 2)"));
  EXPECT_TRUE(tasks.contains("forward") && tasks.contains("backward"));
}

TEST_F(StagesCli, PlanAndBenchWriteTraces) {
  const Outcome planned = tessera("plan" + kStages + "--trace " + path("planned.json"));
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  expect_trace_of_all_ranks(path("planned.json"));
  const Outcome timed =
      tessera("bench" + kStages + "--iterations 1 --warmup 0 --trace " + path("timed.json"));
  ASSERT_EQ(timed.exit_code, 0) << timed.err;
  expect_trace_of_all_ranks(path("timed.json"));
}

TEST_F(StagesCli, PlanAndBenchAgreeToTheByte) {
  const std::string job = kStages + "--pipeline-schedule gems --replicas 2 --json ";
  const json plan = json::parse(tessera("plan" + job).out);
  const json bench = json::parse(tessera("bench" + job + "--iterations 2 --warmup 1").out);
  EXPECT_EQ(plan["ranks"], 6);
  for (const char* key : {"peak_value_bytes", "parameter_bytes", "bytes_sent", "messages", "plan"})
    EXPECT_EQ(plan[key], bench[key]) << key;
}

TEST_F(StagesCli, InspectColoursByStage) {
  ASSERT_EQ(tessera("plan" + kStages + "--write-plan " + path("plan.json")).exit_code, 0);
  const Outcome outcome =
      tessera("inspect" + kModel + "--plan " + path("plan.json") + " --svg " + path("net.svg"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string drawing = read_all(path("net.svg"));
  for (const char* stage : {"stage 0", "stage 1", "stage 2"})
    EXPECT_TRUE(holds(drawing, stage)) << stage;
  EXPECT_FALSE(holds(drawing, "stage 3"));
  for (const char* colour : {"#a6cee3", "#fdbf6f", "#b2df8a"})
    EXPECT_NE(drawing.find(colour), drawing.rfind(colour)) << colour << " is in the legend alone";
  const Outcome other =
      tessera("inspect resnet18 --plan " + path("plan.json") + " --svg " + path("other.svg"));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_TRUE(holds(other.err, "which stage node conv1 belongs to")) << other.err;
}

}  // namespace
