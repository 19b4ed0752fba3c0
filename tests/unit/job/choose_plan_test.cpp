#include "tessera/job/choose_plan.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <iterator>
#include <map>
#include <set>

#include "tessera/planner/balance.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::choose_plan_test {
namespace {

using Grid = std::vector<int64_t>;

/// Four images, four times as wide as they are high.
Graph wide_unet() { return build_model("unet2d:base=2,depth=2,norm=none", {4, 3, 16, 64}); }

JobConfig with_stages(int64_t stages, const std::string& space) {
  JobConfig config;
  config.stages = stages;
  config.space = space;
  return config;
}

JobConfig with_workers(int64_t workers, int64_t replicas, const std::string& space = "") {
  JobConfig config;
  config.workers = workers;
  config.replicas = replicas;
  config.space = space;
  return config;
}

void expect_refused(const JobConfig& config, const std::string& message) {
  EXPECT_EQ(refusal([&] { choose_plan(config, wide_unet()); }), message);
}

TEST(ChoosePlan, OneStageIsCutAlongSpace) {
  JobConfig config = with_stages(1, "2x3");
  config.replicas = 2;
  const Plan plan = choose_plan(config, wide_unet());
  EXPECT_EQ(plan.space, (Grid{2, 3}));
  EXPECT_TRUE(plan.stages.empty());
  EXPECT_EQ(plan.num_ranks(), 12);
}

/// `mpirun -n 4 tessera train ...` is --workers 4; what is given counts more.
TEST(ChoosePlan, WithoutAPlacementALaunchersProcessesAreTheWorkers) {
  ::setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  ::setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  const Plan launched = choose_plan({}, wide_unet());
  const Plan in_space = choose_plan(with_stages(1, "1x2"), wide_unet());
  const Plan in_stages = choose_plan(with_stages(2, ""), wide_unet());
  const Plan replicated = choose_plan(with_workers(0, 2), wide_unet());
  ::setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  ::setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  const Plan alone = choose_plan({}, wide_unet());
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(launched, choose_plan(with_workers(4, 1), wide_unet()));
  EXPECT_EQ(launched.num_ranks(), 4);
  EXPECT_EQ(in_space.num_ranks(), 2);
  EXPECT_EQ(in_stages.num_ranks(), 2);
  EXPECT_EQ(replicated.num_ranks(), 2);
  EXPECT_EQ(alone, choose_plan({}, wide_unet()));
  EXPECT_EQ(alone.num_ranks(), 1);
}

TEST(ChoosePlan, AGridIsForAllStagesOrThereIsOneForEach) {
  const Plan alike = choose_plan(with_stages(3, "1x2"), wide_unet());
  EXPECT_EQ(alike.stages, (std::vector<Grid>{{1, 2}, {1, 2}, {1, 2}}));
  EXPECT_TRUE(alike.space.empty());
  const Plan different = choose_plan(with_stages(3, "2x2,1x2,1x1"), wide_unet());
  EXPECT_EQ(different.stages, (std::vector<Grid>{{2, 2}, {1, 2}, {1, 1}}));
  EXPECT_EQ(different.num_ranks(), 7);
}

TEST(ChoosePlan, RefusesAnotherNumberOfGridsThanStages) {
  expect_refused(with_stages(3, "2x2,1x1"),
                 "[--space] 2x2,1x1 has 2 grids for 3 stages; give one for all of them, or one for "
                 "each");
  expect_refused(with_stages(2, "2x2,"), "[--space] 2x2, ends with a comma; give a grid after it");
}

TEST(ChoosePlan, WorkersGetTheGridWithTheLeastTraffic) {
  EXPECT_EQ(choose_plan(with_workers(4, 1), wide_unet()).space, (Grid{1, 4}));
  EXPECT_EQ(choose_plan(with_workers(4, 2), wide_unet()).space, (Grid{1, 2}));
  EXPECT_EQ(choose_plan(with_workers(4, 1, "2x2"), wide_unet()).space, (Grid{2, 2}));
}

TEST(ChoosePlan, RefusesWorkersThatDoNotFitTheRest) {
  const std::string remedy =
      "; leave --workers out, or give --replicas a divisor of it and no --space";
  expect_refused(with_workers(6, 4), "[--workers] 6 workers do not fit 4 replicas" + remedy);
  expect_refused(with_workers(6, 2, "2x2"),
                 "[--workers] 6 workers do not fit 2 replicas x space 2x2" + remedy);
  JobConfig staged = with_workers(6, 2, "1x2");
  staged.stages = 2;
  expect_refused(staged,
                 "[--workers] 6 workers do not fit 2 replicas and 2 stages of 4 workers in all; "
                 "leave --workers out, and give --space for more workers a stage");
  staged.workers = 8;
  EXPECT_EQ(choose_plan(staged, wide_unet()).num_ranks(), 8);
}

TEST(ChoosePlan, PiecesAreAGridOrANumberThatIsSpread) {
  JobConfig config;
  config.pieces = "2x1";
  EXPECT_EQ(choose_plan(config, wide_unet()).pieces, (Grid{2, 1}));
  config.pieces = "4";
  EXPECT_EQ(choose_plan(config, wide_unet()).pieces, (Grid{1, 4}));
  config.space = "1x16";  // four pixels a rank along the width, sixteen along the height
  EXPECT_EQ(choose_plan(config, wide_unet()).pieces, (Grid{4, 1}));
}

TEST(ChoosePlan, APlanFileReplacesTheOptions) {
  const ScratchFolder folder;
  Plan written;
  written.data = 2;
  written.stages = {{1, 2}, {}};
  written.micro_batches = 2;
  written.schedule = ScheduleKind::kGpipe;
  write_bytes(folder / "plan.json", to_json(written));
  JobConfig config = with_stages(1, "2x2");
  config.plan = folder / "plan.json";
  EXPECT_EQ(choose_plan(config, wide_unet()), written);
  write_bytes(folder / "plan.json", R"({"grid": [2, 2]})");
  expect_refusal([&] { choose_plan(config, wide_unet()); }, "unknown key \"grid\"");
  config.plan = folder / "missing.json";
  expect_refusal([&] { choose_plan(config, wide_unet()); }, "--plan");
}

/// The stages that `config` gives the nodes.
std::map<std::string, int> assigned(const JobConfig& config, const Graph& graph,
                                    at::ScalarType real = at::kFloat) {
  Plan plan = choose_plan(config, graph);
  assign_stages(config, graph, real, &plan);
  return plan.stage_of;
}

TEST(AssignStages, ByNameIsThePlannersBalance) {
  const Graph graph = wide_unet();
  JobConfig config = with_stages(3, "");
  config.micro_batches = 2;
  const Plan plan = choose_plan(config, graph);
  std::set<std::map<std::string, int>> different;
  for (const std::string& name : balance_names()) {
    config.balance = name;
    const std::map<std::string, int> stage_of = assigned(config, graph, at::kDouble);
    EXPECT_EQ(stage_of, balance(graph, plan, {.by = parse_balance(name), .real = at::kDouble}))
        << name;
    different.insert(stage_of);
  }
  EXPECT_GT(different.size(), 2u) << "most balances give the same stages: nothing is compared";
}

TEST(AssignStages, ChunksAreThoseOfTheInterleavedSchedule) {
  const Graph graph = wide_unet();
  JobConfig config = with_stages(2, "");
  config.pipeline_schedule = "interleaved";
  config.micro_batches = 2;
  for (const int64_t chunks : {1, 3}) {
    config.chunks = chunks;
    std::vector<int> turns;
    const std::map<std::string, int> stage_of = assigned(config, graph);
    for (const Node& node : graph.nodes())
      if (turns.empty() || turns.back() != stage_of.at(node.name))
        turns.push_back(stage_of.at(node.name));
    EXPECT_EQ(std::ssize(turns), 2 * chunks);
  }
}

TEST(AssignStages, AFileNamesTheNodesOfEveryStage) {
  const ScratchFolder folder;
  write_bytes(folder / "stages.json", R"([["*"], ["dec1.*", "loss"]])");
  JobConfig config = with_stages(2, "");
  config.balance = folder / "stages.json";
  const std::map<std::string, int> stage_of = assigned(config, wide_unet());
  EXPECT_EQ(stage_of.at("enc1.conv1"), 0);
  EXPECT_EQ(stage_of.at("dec1.conv1"), 1);
  EXPECT_EQ(stage_of.at("loss"), 1);
}

TEST(AssignStages, RefusesWhatIsNeitherANameNorAFile) {
  JobConfig config = with_stages(2, "");
  config.balance = "luck";
  EXPECT_EQ(refusal([&] { assigned(config, wide_unet()); }),
            "[--balance] luck is not a file that can be read; use layers, parameters, memory, "
            "time, or a file");
}

TEST(AssignStages, LeavesPlansAloneThatNeedNoBalance) {
  const Graph graph = wide_unet();
  JobConfig config = with_stages(2, "");
  config.balance = "no such balance";
  Plan plan = choose_plan(config, graph);
  for (const Node& node : graph.nodes()) plan.stage_of[node.name] = node.op->is_loss() ? 1 : 0;
  for (const Plan& given : {plan, Plan()}) {
    Plan after = given;
    assign_stages(config, graph, at::kFloat, &after);
    EXPECT_EQ(after, given);
  }
}

}  // namespace
}  // namespace tessera::choose_plan_test
