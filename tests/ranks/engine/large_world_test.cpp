// More ranks than are proved together: the tree of statistics has several levels, reductions many
// rounds, and the ranks compare their messages when they start.

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/bench/benchmark.h"
#include "tessera/proof/verify.h"
#include "tessera/runtime/messages_agree.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/simulate/forecast.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/differences.h"

namespace tessera::large_world_test {
namespace {

void expect_exact(const Graph& graph, const Plan& plan) {
  SCOPED_TRACE(to_string(plan));
  VerifyOptions options;
  options.plan = plan;
  options.steps = 1;
  options.clip_norm = 0.01;
  options.timeout_seconds = 120;
  const VerifyReport report = verify(graph, options);
  EXPECT_TRUE(report.ok) << differences(report);
}

TEST(LargeWorld, SixtyFourRanksGiveTheNumbersOfOne) {
  expect_exact(build_model("unet2d:base=2,depth=3", {1, 3, 64, 67}), {1, {8, 8}, {}});
}

TEST(LargeWorld, SoDoMoreThanAreProvedTogether) {
  expect_exact(build_model("cnn2d:base=2,depth=2", {2, 3, 40, 41}), {2, {6, 6}, {}});
  expect_exact(build_model("cnn1d:base=2,depth=2", {1, 2, 300}), {1, {67}, {}});
}

TEST(LargeWorld, ForecastsByClassAreWhatTheRanksCount) {
  const Graph graph = build_model("unet2d:base=2,depth=2", {1, 3, 64, 61});
  BenchOptions options;
  options.plan.space = {9, 8};
  options.warmup = 0;
  options.iterations = 1;
  options.update = true;
  const Forecast told = forecast(Lowering(graph, options.plan, timed_step(options)), options.real);
  EXPECT_LT(told.classes.size(), told.ranks.size());
  const BenchReport report = benchmark(graph, options);
  for (int rank = 0; rank < report.ranks; ++rank) {
    SCOPED_TRACE(rank);
    EXPECT_EQ(told.ranks[rank].peak_value_bytes, report.per_rank[rank].peak_value_bytes);
    EXPECT_EQ(told.ranks[rank].reduction_bytes, report.per_rank[rank].reduction_bytes);
    EXPECT_EQ(told.ranks[rank].parameter_bytes, report.per_rank[rank].parameter_bytes);
    EXPECT_EQ(told.ranks[rank].messages, report.per_rank[rank].messages);
    EXPECT_EQ(told.ranks[rank].bytes_sent, report.per_rank[rank].bytes_sent);
  }
}

TEST(LargeWorld, ProgramsThatDoNotFitAreNoticedByAll) {
  const Lowering lowering(build_model("cnn2d:base=2,depth=2", {1, 3, 16, 16}), {1, {2, 2}, {}});
  std::vector<int> refused(4, 0);
  run_on_threads(4, 1, 30, [&](Transport& transport) {
    Program program = lowering.program(transport.rank());
    check_messages_agree(transport, program);
    if (transport.rank() == 2)
      for (Instruction& instruction : program.instructions)
        if (auto* start = std::get_if<StartTransfer>(&instruction)) ++start->channel;
    try {
      check_messages_agree(transport, program);
    } catch (const InternalError&) {
      refused[transport.rank()] = 1;
    }
  });
  EXPECT_EQ(refused, std::vector<int>(4, 1));
}

}  // namespace
}  // namespace tessera::large_world_test
