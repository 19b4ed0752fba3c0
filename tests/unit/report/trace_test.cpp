// Traces are what viewers read: valid JSON, every event with its times and its rank, properly
// nested.

#include "tessera/report/trace.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/bench/gather_trace.h"
#include "tessera/comm/threads/threads.h"
#include "tessera/report/task_events.h"
#include "tessera/simulate/timeline_trace.h"
#include "tests/unit/report/nesting.h"
#include "tests/unit/simulate/hand_made.h"

namespace tessera::trace_test {
namespace {

using namespace hand_made;
using nlohmann::json;

/// The complete events of a trace; fails where one lacks what viewers need.
std::vector<json> complete_events(const json& trace) {
  std::vector<json> events;
  for (const json& event : trace.at("traceEvents")) {
    EXPECT_TRUE(event.at("ph") == "X" || event.at("ph") == "M") << event;
    EXPECT_EQ(event.at("pid"), 0);
    EXPECT_TRUE(event.at("tid").is_number_integer()) << event;
    if (event.at("ph") != "X") continue;
    EXPECT_TRUE(event.at("ts").is_number()) << event;
    EXPECT_GE(event.at("dur").get<double>(), 0) << event;
    EXPECT_TRUE(event.at("name").is_string() && event.at("cat").is_string()) << event;
    events.push_back(event);
  }
  return events;
}

/// Stages of one rank each.
Plan plan_of(int num_stages) {
  Plan plan;
  plan.stages.resize(num_stages);
  return plan;
}

TEST(Trace, OfATimelineHoldsTasksAndTheWaitsInside) {
  const std::vector<Program> programs = two_stages();
  const std::vector<TraceEvent> events = to_trace(make_timeline(programs, Graph()));
  const json trace = json::parse(to_chrome_trace(events, rank_names(plan_of(2))));
  const std::vector<json> complete = complete_events(trace);
  ASSERT_EQ(complete.size(), 12u + 3u);
  EXPECT_EQ(complete[0].at("name"), "forward 0");
  EXPECT_EQ(complete[0].at("ts"), 0);
  EXPECT_EQ(complete[0].at("dur"), 1000);  // a unit is a millisecond
  EXPECT_EQ(complete[8].at("tid"), 1);
  EXPECT_EQ(complete[8].at("cat"), "forward");
  EXPECT_EQ(complete[8].at("args").at("micro-batch"), "1");
  EXPECT_EQ(complete[8].at("args").at("stage"), "1");
  EXPECT_EQ(complete[12].at("cat"), "wait");
  expect_nested(events);
}

TEST(Trace, NamesItsLines) {
  const json trace = json::parse(to_chrome_trace({}, rank_names(plan_of(2))));
  std::vector<std::string> names;
  for (const json& event : trace.at("traceEvents"))
    if (event.at("name") == "thread_name") names.push_back(event.at("args").at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"rank 0 (stage 0)", "rank 1 (stage 1)"}));
}

TEST(Trace, NamesARankOfSeveralStagesAndOfOneOnly) {
  Plan mirrored = plan_of(3);
  mirrored.schedule = ScheduleKind::kGems;
  mirrored.micro_batches = 2;
  EXPECT_EQ(rank_names(mirrored),
            (std::vector<std::string>{"rank 0 (stages 0, 2)", "rank 1 (stage 1)",
                                      "rank 2 (stages 0, 2)"}));
  EXPECT_EQ(rank_names(plan_of(1)), std::vector<std::string>{"rank 0"});
}

TEST(Trace, IsValidWhateverTheNamesHold) {
  const TraceEvent event{
      .name = "conv \"1\"\n\\ \xff", .category = "kernel", .args = {{"\x01", "é"}}};
  const json trace = json::parse(to_chrome_trace({event}, {"rank\t0"}));
  EXPECT_EQ(complete_events(trace).size(), 1u);
}

TEST(Trace, KeepsEqualTimesEqual) {
  // Begin and duration rounded apart would let the first event reach into the second.
  const double begin = 0.1, middle = 1.0 / 3, end = 0.77;
  const json trace =
      json::parse(to_chrome_trace({{.name = "a", .begin_us = begin, .duration_us = middle - begin},
                                   {.name = "b", .begin_us = middle, .duration_us = end - middle}},
                                  {"rank 0"}));
  const std::vector<json> events = complete_events(trace);
  EXPECT_EQ(events[0].at("ts").get<double>() + events[0].at("dur").get<double>(),
            events[1].at("ts").get<double>());
}

TEST(Trace, RefusesTimesThatCannotBeDrawn) {
  EXPECT_THROW(to_chrome_trace({{.name = "a", .duration_us = -1}}, {}), InternalError);
  EXPECT_THROW(
      to_chrome_trace({{.name = "a", .begin_us = std::numeric_limits<double>::quiet_NaN()}}, {}),
      InternalError);
}

TEST(Trace, EventsTravelUnchanged) {
  const std::vector<TraceEvent> events{{"forward 0", "forward", 3, 0.1, 1e6 / 3, {{"stage", "1"}}},
                                       {"wait", "wait", 0, 0, 0, {}}};
  EXPECT_EQ(events_from_json(events_to_json(events)), events);
}

TEST(Trace, IsGatheredFromAllRanks) {
  // Rank r gives r events: none, one, two.
  threads::run_ranks(3, [](Transport& transport) {
    const TraceEvent own{.name = "task", .category = "forward", .rank = transport.rank()};
    const std::vector<TraceEvent> all =
        gather_trace(transport, {0, 1, 2}, std::vector<TraceEvent>(transport.rank(), own));
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].rank, 1);
    EXPECT_EQ(all[1].rank, 2);
    EXPECT_EQ(all[2].rank, 2);
  });
}

}  // namespace
}  // namespace tessera::trace_test
