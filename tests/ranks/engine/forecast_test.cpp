// One program, two interpreters: what the simulator predicts is what the executor counts, to the
// byte.

#include <gtest/gtest.h>

#include <array>

#include "tessera/bench/benchmark.h"
#include "tessera/lower/arena.h"
#include "tessera/lower/lower.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tessera/planner/balance.h"
#include "tessera/simulate/simulator.h"
#include "tessera/zoo/zoo.h"
#include "tests/ranks/engine/random_chains.h"
#include "tests/ranks/engine/random_stages.h"

namespace tessera::forecast_test {
namespace {

void check(const Graph& graph, const Plan& plan, at::ScalarType real, bool update = false) {
  BenchOptions options;
  options.plan = plan;
  options.real = real;
  options.warmup = 0;
  options.iterations = 1;
  options.update = update;
  const Lowered lowered = lower(graph, plan, timed_step(options));
  const BenchReport report = benchmark(graph, options);
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const RankForecast forecast = simulate(lowered.programs[rank], real);
    EXPECT_EQ(forecast.peak_value_bytes, report.per_rank[rank].peak_value_bytes);
    EXPECT_EQ(lay_out(lowered.programs[rank], real).bytes, report.per_rank[rank].arena_bytes);
    EXPECT_EQ(forecast.reduction_bytes, report.per_rank[rank].reduction_bytes);
    EXPECT_EQ(forecast.scratch_bytes, report.per_rank[rank].scratch_bytes);
    EXPECT_EQ(forecast.parameter_bytes, report.per_rank[rank].parameter_bytes);
    EXPECT_EQ(forecast.messages, report.per_rank[rank].messages);
    EXPECT_EQ(forecast.bytes_sent, report.per_rank[rank].bytes_sent);
  }
}

at::ScalarType number_of(uint64_t seed) {
  return std::array{at::kDouble, at::kFloat, at::kBFloat16}[seed % 3];
}

TEST(Forecast, EqualsWhatRandomNetworksCount) {
  for (uint64_t seed = 1001; seed <= 1040; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomCase random = random_case(seed);
    check(random.graph, random.plan, number_of(seed), seed % 4 == 0);
  }
}

TEST(Forecast, EqualsWhatTheZooCounts) {
  check(build_model("unet2d:base=4,depth=4", {1, 3, 64, 61}), {1, {2, 2}, {}}, at::kFloat);
  check(build_model("unet2d:base=4,depth=4,norm=none", {2, 3, 64, 61}), {2, {1, 3}, {2, 1}},
        at::kFloat);
  check(build_model("fcn2d:width=0.05", {1, 3, 96, 64}), {1, {3, 2}, {}}, at::kDouble);
  check(build_model("cnn3d:base=4,depth=2", {2, 1, 16, 16, 17}), {2, {1, 2, 2}, {}}, at::kFloat);
}

TEST(Forecast, EqualsWhatRandomStagesCount) {
  for (uint64_t seed = 1001; seed <= 1040; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomCase random = random_stages_case(seed);
    check(random.graph, random.plan, number_of(seed), seed % 4 == 0);
  }
}

TEST(Forecast, EqualsWhatRandomChainsCount) {
  for (uint64_t seed = 1001; seed <= 1020; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomCase random = random_chain_case(seed);
    check(random.graph, random.plan, number_of(seed), seed % 4 == 0);
  }
}

void check_stages(const std::vector<std::vector<int64_t>>& grids, int64_t data,
                  int64_t micro_batches, ScheduleKind schedule) {
  Plan plan;
  plan.data = data;
  plan.stages = grids;
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  SCOPED_TRACE(to_string(plan));
  const Graph graph = with_micro_batch_norm(
      build_model("unet2d:base=4,depth=3", {2 * micro_batches, 3, 32, 29}), micro_batches);
  plan.stage_of = balance(graph, plan, {});
  check(graph, plan, at::kFloat);
}

TEST(Forecast, EqualsWhatStagesCount) {
  using enum ScheduleKind;
  check_stages({{}, {}, {}}, 1, 3, kOneForwardOneBackward);
  check_stages({{2, 1}, {1, 1}}, 2, 2, kOneForwardOneBackward);
  check_stages({{}, {}, {}}, 1, 4, kGems);
  check_stages({{1, 2}, {1, 2}}, 2, 3, kGems);
  check_stages({{}, {}, {}}, 1, 3, kZeroBubble);
  check_stages({{}, {}}, 1, 4, kInterleaved);
  check_stages({{}, {2, 2}}, 1, 3, kGpipe);
  check_stages({{}, {}}, 1, 1, kSequential);
}

}  // namespace
}  // namespace tessera::forecast_test
