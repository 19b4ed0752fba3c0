// Every model of the zoo cut into stages, in float64 against the oracle: 2, 3 and 4 stages, every
// schedule, every balance, orders by either costs, with grids, replicas and pieces.

#include <gtest/gtest.h>

#include "tessera/lower/micro_batch_norm.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/loss/cross_entropy.h"
#include "tessera/ops/loss/loss_target.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/planner/balance.h"
#include "tessera/proof/verify.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/differences.h"
#include "tests/ranks/engine/zoo_families.h"

namespace tessera::zoo_stages_test {
namespace {

constexpr BalanceBy kBalances[] = {BalanceBy::kLayers, BalanceBy::kParameters, BalanceBy::kMemory,
                                   BalanceBy::kTime};
constexpr ScheduleKind kSchedules[] = {
    ScheduleKind::kSequential,  ScheduleKind::kGpipe,      ScheduleKind::kOneForwardOneBackward,
    ScheduleKind::kInterleaved, ScheduleKind::kZeroBubble, ScheduleKind::kGems};

struct StagesCase {
  std::string model;
  Shape image;  // without the batch, which follows from the plan
  Plan plan;
  BalanceBy balance = BalanceBy::kTime;
  int64_t steps = 2;
};

void PrintTo(const StagesCase& stages, std::ostream* out) {
  *out << stages.model << " on " << to_string(stages.plan) << " by " << to_string(stages.balance);
}

class ZooStages : public testing::TestWithParam<StagesCase> {};

TEST_P(ZooStages, EqualsTheOracle) {
  const StagesCase& stages = GetParam();
  Plan plan = stages.plan;
  Shape input{2 * plan.micro_batches};  // so that there can be two replicas
  input.insert(input.end(), stages.image.begin(), stages.image.end());
  const Graph graph = with_micro_batch_norm(build_model(stages.model, input), plan.micro_batches);
  plan.stage_of = balance(graph, plan, {.by = stages.balance, .real = at::kDouble});
  VerifyOptions options;
  options.plan = plan;
  options.steps = stages.steps;
  const VerifyReport report = verify(graph, options);
  EXPECT_TRUE(report.ok) << differences(report);
}

Plan pipeline(int64_t num_stages, ScheduleKind schedule) {
  Plan plan;
  plan.stages.resize(num_stages);
  plan.schedule = schedule;
  plan.micro_batches = schedule == ScheduleKind::kInterleaved ? num_stages : 2;
  return plan;
}

/// All schedules with all balances.
std::vector<StagesCase> all_schedules(const std::string& model, const Shape& image) {
  std::vector<StagesCase> all;
  for (int64_t num_stages : {2, 3, 4})
    for (ScheduleKind schedule : kSchedules)
      for (BalanceBy balance : kBalances)
        all.push_back({model, image, pipeline(num_stages, schedule), balance});
  return all;
}

/// Costs change the order most where a stage has several chunks, and those are uneven.
std::vector<StagesCase> ordered_by_flops(const std::string& model, const Shape& image) {
  std::vector<StagesCase> all;
  for (ScheduleKind schedule : kSchedules) {
    all.push_back({model, image, pipeline(3, schedule), BalanceBy::kMemory});
    all.back().plan.schedule_costs = ScheduleCosts::kFlops;
    all.back().plan.micro_batches = 6;
  }
  return all;
}

/// One way to add another axis to a plan, by turns: a grid on every stage, on one stage, replicas,
/// pieces.
void add_axis(const ZooFamily& family, size_t turn, Plan* plan) {
  const std::vector<int64_t>& grid = family.grids[turn % family.grids.size()];
  if (turn % 5 == 1) plan->stages.assign(plan->stages.size(), grid);
  if (turn % 5 == 2 && plan->schedule != ScheduleKind::kGems) plan->stages[0] = grid;
  if (turn % 5 == 3) plan->data = 2;
  if (turn % 5 == 4) plan->pieces = family.pieces;
}

/// Every model on 2, 3 and 4 stages, with schedules, balances and other axes by turns.
std::vector<StagesCase> all_models() {
  std::vector<StagesCase> all;
  std::vector<ZooFamily> families = small_models();
  for (ZooFamily& family : published_models()) families.push_back(family);
  size_t turn = 0;
  for (const ZooFamily& family : families)
    for (int64_t num_stages : {2, 3, 4}) {
      ++turn;
      if (family.input[2] > 200 && num_stages != 3) continue;  // the largest takes its time
      Plan plan = pipeline(num_stages, kSchedules[turn % std::size(kSchedules)]);
      if (turn % 4 < 2) plan.schedule_costs = ScheduleCosts::kFlops;
      add_axis(family, turn, &plan);
      if (plan.num_ranks() > 16) continue;
      const Shape image(family.input.begin() + 1, family.input.end());
      all.push_back(
          {family.model, image, plan, kBalances[turn % std::size(kBalances)], family.steps});
    }
  return all;
}

/// A norm that is used twice has its running statistics updated twice a step, in the order of the
/// nodes, on every rank that holds them.
Graph twice_normalised(int64_t batch) {
  Graph graph;
  ValueId x = graph.add_input("image", ValueType::image({batch, 2, 9, 8}));
  for (const char* conv : {"first", "second", "third"}) {
    x = convolution(graph, x, conv, {.out_channels = 3, .kernel = {3, 3}, .padding = {1, 1}});
    if (std::string(conv) != "third") x = batch_norm(graph, x, "norm");
  }
  graph.mark_output(x);
  cross_entropy(graph, x, add_target(graph, x, "target"), "loss");
  return graph;
}

TEST(SharedNorm, IsTheSameOnAllOfItsHolders) {
  for (ScheduleKind schedule : kSchedules)
    for (int64_t num_stages : {2, 3})
      for (int64_t micro_batches : {1, 2, 3}) {
        if (schedule == ScheduleKind::kInterleaved && micro_batches != num_stages) continue;
        Plan plan = pipeline(num_stages, schedule);
        plan.micro_batches = micro_batches;
        if (micro_batches == 2) plan.stages[0] = {2, 1};
        if (schedule == ScheduleKind::kGems) plan.stages.back() = plan.stages[0];
        const Graph graph = with_micro_batch_norm(twice_normalised(6), micro_batches);
        int index = 0;
        for (const Node& node : graph.nodes())
          plan.stage_of[node.name] = static_cast<int>(index++ % num_stages);
        VerifyOptions options;
        options.plan = plan;
        const VerifyReport report = verify(graph, options);
        EXPECT_TRUE(report.ok) << to_string(plan) << ": " << report.worst << ", buffers "
                               << report.buffer_rel;
      }
}

INSTANTIATE_TEST_SUITE_P(Unet, ZooStages,
                         testing::ValuesIn(all_schedules("unet2d:base=2,depth=3,classes=3",
                                                         {3, 27, 22})));
INSTANTIATE_TEST_SUITE_P(ByFlops, ZooStages,
                         testing::ValuesIn(ordered_by_flops("unet2d:base=2,depth=3", {3, 27, 22})));
INSTANTIATE_TEST_SUITE_P(Head, ZooStages,
                         testing::ValuesIn(all_schedules("cnn2d:base=2,depth=3,norm=none",
                                                         {3, 19, 17})));
INSTANTIATE_TEST_SUITE_P(Models, ZooStages, testing::ValuesIn(all_models()));

}  // namespace
}  // namespace tessera::zoo_stages_test
