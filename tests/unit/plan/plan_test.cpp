#include "tessera/plan/plan.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tests/unit/refusal.h"

namespace tessera::plan_test {
namespace {

Plan parse(const std::string& text) { return plan_from_json(text, "p.json"); }

const ValueType kImage = ValueType::image({2, 3, 16, 20});

void expect_refused(const Plan& plan, const std::string& part) {
  try {
    check_plan(plan, kImage);
    ADD_FAILURE() << to_string(plan) << " passed";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Plan, TakesWhatFits) {
  check_plan({}, kImage);
  check_plan({2, {16, 20}, {}}, kImage);
  check_plan({2, {4, 4}, {4, 5}}, kImage);
}

TEST(Plan, RefusesWhatDoesNot) {
  expect_refused({3, {}, {}}, "use at most 2");
  expect_refused({0, {}, {}}, "data");
  expect_refused({1, {17, 1}, {}}, "16 pixels");
  expect_refused({1, {4, 4}, {5, 1}}, "16 pixels");
  expect_refused({1, {2}, {}}, "2 spatial axes");
  expect_refused({1, {2, 2, 2}, {}}, "2 spatial axes");
  expect_refused({1, {2, 0}, {}}, "space");
  expect_refused({1, {2, -3}, {}}, "space");
  expect_refused({1, {int64_t{1} << 62, 4}, {}}, "space");
}

TEST(Plan, IsAJsonFile) {
  const Plan plan{2, {2, 3}, {1, 4}};
  EXPECT_EQ(parse(to_json(plan)), plan);
  EXPECT_EQ(parse("{}"), Plan{});
  for (const char* bad : {"", "[]x", "{\"space\": \"2x2\"}", "{\"rows\": 2}", "{\"data\": [1]}"})
    EXPECT_THROW(parse(bad), InvalidInput) << bad;
}

Plan staged(std::vector<std::vector<int64_t>> grids, int64_t micro_batches = 1,
            ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward) {
  Plan plan;
  plan.stages = std::move(grids);
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  return plan;
}

TEST(Plan, WithStagesIsAJsonFile) {
  for (const std::string& name : schedule_names()) {
    Plan plan = staged({{2, 2}, {1, 2}, {}}, 4, parse_schedule(name));
    plan.data = 2;
    plan.pieces = {1, 3};
    plan.stage_of = {{"enc1.conv1", 0}, {"mid", 1}, {"loss", 2}};
    plan.schedule_costs = ScheduleCosts::kFlops;
    const std::string text = to_json(plan);
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_EQ(parse(text), plan) << text;
    Plan one_stage{1, {2, 2}, {}};
    one_stage.micro_batches = 3;
    one_stage.schedule = plan.schedule;
    EXPECT_EQ(parse(to_json(one_stage)), one_stage);
  }
  const Plan read = parse(
      R"({"stages": [[2, 1], []], "stage_of": {"a": 1}, "micro_batches": 3, "schedule": "gems"})");
  EXPECT_EQ(read.stages, (std::vector<std::vector<int64_t>>{{2, 1}, {}}));
  EXPECT_EQ(read.stage_of.at("a"), 1);
  EXPECT_EQ(read.micro_batches, 3);
  EXPECT_EQ(read.schedule, ScheduleKind::kGems);
  EXPECT_EQ(read.schedule_costs, ScheduleCosts::kTasks);
}

TEST(Plan, WithMultigridIsAJsonFile) {
  Plan plan = staged({{2}, {2}}, 1, ScheduleKind::kOneForwardOneBackward);
  plan.stage_of = {{"a", 0}, {"b", 1}};
  plan.multigrid = {.levels = 3, .coarsening = 8, .forward = 4, .relaxations = 0, .skip = true};
  EXPECT_EQ(parse(to_json(plan)), plan);
  plan.multigrid->measure_gradients = true;
  EXPECT_EQ(parse(to_json(plan)), plan);
  EXPECT_NE(to_string(plan).find("multigrid levels=3,coarsening=8,forward=4"), std::string::npos);
  EXPECT_FALSE(parse("{}").multigrid);
  EXPECT_THROW(parse(R"({"multigrid": "levels=0"})"), InvalidInput);
  EXPECT_THROW(parse(R"({"multigrid": 3})"), InvalidInput);
}

TEST(Plan, RefusesStagesOfOtherTypes) {
  for (const char* bad :
       {R"({"stages": 3})", R"({"stages": [2, 2]})", R"({"stages": ["2x2"]})",
        R"({"stage_of": ["a"]})", R"({"stage_of": {"a": "0"}})", R"({"stage_of": {"a": [0]}})",
        R"({"micro_batches": "4"})", R"({"micro_batches": [4]})", R"({"micro_batches": null})",
        R"({"schedule": 1})", R"({"schedule": null})", R"({"schedule": ["gems"]})",
        R"({"micro_batch": 2})"})
    EXPECT_THROW(parse(bad), InvalidInput) << bad;
  try {
    parse(R"({"schedule": "2f2b"})");
    ADD_FAILURE() << "2f2b passed";
  } catch (const InvalidInput& error) {
    EXPECT_NE(
        std::string(error.what())
            .find("2f2b is unknown; use sequential, gpipe, 1f1b, interleaved, zero-bubble, gems"),
        std::string::npos)
        << error.what();
  }
}

/// A count that is cut off, or wraps round, would be another plan than the one in the file.
TEST(Plan, RefusesNumbersThatAreNotCounts) {
  for (const char* bad : {R"({"data": 1.5})", R"({"space": [1.5, 2]})", R"({"micro_batches": 2.5})",
                          R"({"stages": [[1, 1], [2.5, 1]]})", R"({"stage_of": {"a": 0.5}})",
                          R"({"stage_of": {"a": true}})", R"({"stage_of": {"a": 4294967296}})"})
    EXPECT_THROW(parse(bad), InvalidInput) << bad;
}

TEST(Plan, RefusalsNameTheFileAndTheKey) {
  expect_refusal([] { parse(R"({"space": [2, -1]})"); },
                 "[plan] p.json: \"space\" holds -1; give a whole number from 1 to 1048576");
  expect_refusal([] { parse(R"({"data": 2, "data": 3})"); }, "the name \"data\" occurs twice");
  expect_refusal([] { parse(std::string(200'000, '[')); },
                 "[plan] p.json: it is nested too deeply");
  expect_refusal([] { parse(R"({"schedule": 3})"); }, "\"schedule\" holds 3");
}

/// Counts that are legal one by one.
TEST(Plan, RefusesMoreRanksThanCanBePlanned) {
  const ValueType large = ValueType::image({1 << 20, 3, 1 << 20, 1 << 20});
  check_plan({1, {256, 256}, {}}, large);
  const auto refused = [&](const Plan& plan) {
    expect_refusal([&] { check_plan(plan, large); }, "more than 65536 workers");
  };
  refused({1, {257, 256}, {}});
  refused({1 << 20, {1 << 20, 1 << 20}, {}});  // 2^60
  refused(staged(std::vector<std::vector<int64_t>>(4096, {1 << 16, 1 << 16})));
  expect_refusal(
      [&] {
        check_num_ranks({int64_t{1} << 40, {int64_t{1} << 40, 1}, {}});
      },
      "more than 65536 workers");  // 2^80
  expect_refusal([&] { check_num_ranks({1, {0, 4}, {}}); }, "1 or more");
}

TEST(Plan, RefusesStagesThatDoNotFit) {
  check_plan(staged({{2, 2}, {}, {16, 1}}, 2), kImage);
  Plan both = staged({{2, 2}, {1, 1}});
  both.space = {2, 2};
  expect_refused(both, "leave \"space\" out");
  expect_refused(staged({{2, 2}, {2}, {}}), "space 2 has 1 axis");
  expect_refused(staged({{}, {2, 2, 1}}), "2 spatial axes");
  expect_refused(staged({{2, 2}, {1, 21}}), "20 pixels");
  expect_refused(staged({{2, 2}, {1, 0}}), "space");
  expect_refused(staged({{1 << 20, 1}, {1, 1}}), "pixels");
  Plan pieces = staged({{1, 1}, {8, 1}});
  pieces.pieces = {3, 1};
  expect_refused(pieces, "8 x 3 (space x pieces)");

  expect_refused(staged({{}, {}}, 0), "micro-batches has 0 parts");
  expect_refused(staged({{}, {}}, -1), "micro-batches has -1 parts");
  expect_refused(staged({{}, {}}, 3), "3 micro-batches x data 1 is more than the batch of 2");
  Plan replicas = staged({{}, {}}, 2);
  replicas.data = 2;
  expect_refused(replicas,
                 "2 micro-batches x data 2 is more than the batch of 2; use a batch of "
                 "at least 4");
}

TEST(Plan, GemsNeedsMirroredGrids) {
  check_plan(staged({{2, 1}, {1, 3}, {2, 1}}, 2, ScheduleKind::kGems), kImage);
  expect_refused(staged({{2, 1}, {1, 2}}, 2, ScheduleKind::kGems),
                 "stage 0 and stage 1 need the same grid, not 2x1 and 1x2");
  expect_refused(staged({{2, 1}, {1, 2}, {1, 2}}, 2, ScheduleKind::kGems), "stage 0 and stage 2");
  check_plan(staged({{2, 1}, {1, 2}}, 2), kImage);
}

TEST(Plan, NumbersReplicasThenStagesThenCells) {
  Plan plan = staged({{2, 2}, {1, 2}, {}}, 2);
  plan.data = 2;
  EXPECT_EQ(plan.num_stages(), 3);
  EXPECT_EQ(plan.ranks_per_replica(), 7);
  EXPECT_EQ(plan.num_ranks(), 14);
  const std::vector<int> first{0, 4, 6, 7}, ranks{4, 2, 1};
  for (int stage = 0; stage <= 3; ++stage) EXPECT_EQ(plan.first_rank(stage), first[stage]);
  for (int stage = 0; stage < 3; ++stage) EXPECT_EQ(plan.ranks_of_stage(stage), ranks[stage]);
  EXPECT_EQ(plan.stage_ranks(0), (Members{0, 1, 2, 3, 7, 8, 9, 10}));
  EXPECT_EQ(plan.stage_ranks(1), (Members{4, 5, 11, 12}));
  EXPECT_EQ(plan.stage_ranks(2), (Members{6, 13}));
  EXPECT_EQ(plan.grid(1), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(plan.space_parts(1, 1), 2);
  EXPECT_EQ(plan.space_parts(2, 1), 1);

  const Plan one{2, {2, 3}, {}};
  EXPECT_EQ(one.num_stages(), 1);
  EXPECT_EQ(one.num_ranks(), 12);
  EXPECT_EQ(one.stage_ranks(0), (Members{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

TEST(Plan, OnlyGemsMovesStagesAndOnlyForOddMicroBatches) {
  for (const std::string& name : schedule_names()) {
    const Plan plan = staged({{}, {}, {}}, 4, parse_schedule(name));
    for (int stage = 0; stage < 3; ++stage)
      for (int64_t m = 0; m < 4; ++m)
        EXPECT_EQ(plan.place_of_stage(stage, m), name == "gems" && m % 2 == 1 ? 2 - stage : stage)
            << name << " stage " << stage << " micro-batch " << m;
  }
}

TEST(Plan, IsAText) {
  EXPECT_EQ(to_string(Plan{}), "data 1");
  EXPECT_EQ(to_string(Plan{2, {2, 2}, {1, 2}}), "data 2, space 2x2, pieces 1x2");
  EXPECT_EQ(to_string(staged({{}, {}}, 4, ScheduleKind::kGpipe)),
            "data 1, 2 stages, 4 micro-batches, gpipe");
  EXPECT_EQ(to_string(staged({{1, 1}, {}, {}})), "data 1, 3 stages, 1f1b");
  Plan plan = staged({{2, 2}, {1, 2}, {}}, 2, ScheduleKind::kZeroBubble);
  plan.data = 2;
  plan.pieces = {2, 1};
  EXPECT_EQ(to_string(plan),
            "data 2, 3 stages of 2x2, 1x2, 1, pieces 2x1, 2 micro-batches, zero-bubble");
  Plan one_stage;
  one_stage.micro_batches = 2;
  EXPECT_EQ(to_string(one_stage), "data 1, 2 micro-batches, 1f1b");
  one_stage.schedule_costs = ScheduleCosts::kFlops;
  EXPECT_EQ(to_string(one_stage), "data 1, 2 micro-batches, 1f1b by flops");
}

TEST(ScheduleKind, HasNames) {
  const std::vector<std::string> names = schedule_names();
  EXPECT_EQ(names.size(), 6u);
  for (const std::string& name : names) EXPECT_EQ(to_string(parse_schedule(name)), name);
  for (const char* bad : {"", "GPipe", "1f1b ", "zero_bubble"})
    EXPECT_THROW(parse_schedule(bad), InvalidInput) << bad;
}

TEST(ScheduleCosts, HaveNames) {
  EXPECT_EQ(schedule_costs_names(), (std::vector<std::string>{"tasks", "flops"}));
  for (const std::string& name : schedule_costs_names())
    EXPECT_EQ(to_string(parse_schedule_costs(name)), name);
  for (const char* bad : {"", "Flops", "seconds"})
    EXPECT_THROW(parse_schedule_costs(bad), InvalidInput) << bad;
}

}  // namespace
}  // namespace tessera::plan_test
