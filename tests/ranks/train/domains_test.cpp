// Training on several domains is training on one rank: data sets, batches and orders of their own,
// validation of the labelled task, and runs that are left and entered again.

#include <fmt/format.h>

#include "tessera/planner/domains.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/train/training.h"
#include "tests/unit/refusal.h"

namespace tessera::train_domains_test {
namespace {

Graph four_domains(const std::string& options = "") {
  return build_model("dsn:base=2,code=5,classes=3,targets=3,target_batch=3" + options,
                     {4, 1, 16, 16});
}

Plan by_domains(const Graph& graph, int per_domain, std::vector<int64_t> grid = {}) {
  const DomainGroups groups = group_by_domains(graph, per_domain);
  Plan plan;
  plan.stages.assign(groups.count(), grid);
  plan.stage_of = stages_by_domains(graph, plan, groups);
  return plan;
}

std::string made_up(int64_t samples, const char* noise) {
  return fmt::format("synthetic:kind=classification,samples={},classes=3,noise={},scale=8", samples,
                     noise);
}

class DomainTraining : public Training {
 protected:
  /// Epochs of 5, 2, 3 and 4 batches.
  TrainConfig config(const std::string& run, int64_t steps) const {
    TrainConfig config = Training::config(run, steps);
    config.data = fmt::format("source={};target1={};target2={};target3={}", made_up(24, "0.1"),
                              made_up(7, "0.5"), made_up(10, "1"), made_up(12, "0.3"));
    return config;
  }
};

TEST_F(DomainTraining, OnWorkersOfTheirOwnIsThatOfOneRank) {
  const Graph graph = four_domains();
  const Trained one = train(config("one", 20), {}, graph);
  ASSERT_TRUE(one.outcome.validation);
  int run = 0;
  for (const Plan& plan :
       {by_domains(graph, 1), by_domains(graph, 2), by_domains(graph, 1, {2, 1})}) {
    SCOPED_TRACE(to_string(plan));
    const Trained placed = train(config(fmt::format("run{}", run++), 20), plan, graph);
    EXPECT_EQ(placed.outcome.steps, 20);
    EXPECT_LE(difference(placed, one), 1e-9);
    EXPECT_LE(difference_of_checkpoints(placed, one), 1e-9);
    EXPECT_NEAR(placed.outcome.loss, one.outcome.loss, 1e-9);
    ASSERT_TRUE(placed.outcome.validation);
    EXPECT_NEAR(placed.outcome.validation->loss, one.outcome.validation->loss, 1e-9);
  }
}

/// Each of the domains has a say: other numbers in one of them give other weights.
TEST_F(DomainTraining, ReadsTheImagesOfEachDomain) {
  const Graph graph = four_domains();
  const Trained one = train(config("one", 3), {}, graph);
  int run = 0;
  for (const char* noise : {"=0.5", "=1,", "=0.3"}) {
    TrainConfig other = config(fmt::format("other{}", run++), 3);
    const size_t place = other.data.find(std::string("noise") + noise);
    ASSERT_NE(place, std::string::npos);
    other.data.replace(place + 6, 1, "2");
    EXPECT_GT(difference(train(other, {}, graph), one), 1e-6) << other.data;
  }
}

TEST_F(DomainTraining, ResumesWithTheSameBits) {
  const Graph graph = four_domains(",start=2,ramp=3,lambda_ramp=4,similarity=mmd");
  const Plan plan = by_domains(graph, 1);
  const Trained whole = train(config("whole", 6), plan, graph);
  const TrainConfig part = config("parts", 6);
  for (int stops = 0; stops < 3; ++stops) train_one_step(part, plan, graph);
  const Trained resumed = train(part, plan, graph);
  EXPECT_EQ(difference(resumed, whole), 0);
  EXPECT_EQ(difference_of_checkpoints(resumed, whole), 0);
}

TEST_F(DomainTraining, RefusesDomainsThatDoNotFit) {
  const Graph graph = four_domains();
  const auto refused = [&](const std::string& data) {
    TrainConfig bad = config("bad", 1);
    bad.data = data;
    return refusal([&] { prepare_training(bad, graph, {}, at::kDouble); });
  };
  const std::string source = "source=" + made_up(24, "0.1");
  EXPECT_NE(refused(source).find("there is no data for target1"), std::string::npos);
  const std::string rest = ";target1=" + made_up(7, "0") + ";target2=" + made_up(7, "0");
  EXPECT_NE(refused(source + rest + ";target3=" + made_up(7, "0") + ",size=8x8")
                .find("[--data] target3: [data] an image is 1x8x8, the network takes 1x16x16"),
            std::string::npos);
  EXPECT_NE(refused(source + rest + ";target3=" + made_up(2, "0")).find("[--data] target3: "),
            std::string::npos);
}

}  // namespace
}  // namespace tessera::train_domains_test
