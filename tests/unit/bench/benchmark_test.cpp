#include "tessera/bench/benchmark.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tessera/lower/lower.h"
#include "tessera/lower/posts.h"
#include "tessera/proof/verify.h"
#include "tessera/simulate/simulator.h"
#include "tessera/zoo/zoo.h"

namespace tessera::benchmark_test {
namespace {

Graph small_unet() { return build_model("unet2d:base=2,depth=2,norm=none", {2, 3, 16, 16}); }

BenchOptions on_four_ranks(int64_t iterations) {
  BenchOptions options;
  options.plan.data = 2;
  options.plan.space = {2, 1};
  options.warmup = 1;
  options.iterations = iterations;
  return options;
}

TEST(Benchmark, CountsOfOneStepAreThoseOfTheForecast) {
  const Graph graph = small_unet();
  for (const int64_t iterations : {1, 4}) {
    const BenchOptions options = on_four_ranks(iterations);
    const Lowered lowered = lower(graph, options.plan, timed_step(options));
    const BenchReport report = benchmark(graph, options);
    EXPECT_EQ(report.ranks, 4);
    ASSERT_EQ(report.per_rank.size(), 4u);
    for (int rank = 0; rank < 4; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      const RankForecast forecast = simulate(lowered.programs[rank], options.real);
      const RankMeasurement& measured = report.per_rank[rank];
      EXPECT_EQ(measured.peak_value_bytes, forecast.peak_value_bytes);
      EXPECT_EQ(measured.reduction_bytes, forecast.reduction_bytes);
      EXPECT_GT(measured.reduction_bytes, 0);
      EXPECT_EQ(measured.scratch_bytes, forecast.scratch_bytes);
      EXPECT_GT(measured.scratch_bytes, 0);
      EXPECT_EQ(measured.parameter_bytes, forecast.parameter_bytes);
      EXPECT_EQ(measured.messages, forecast.messages);
      EXPECT_EQ(measured.bytes_sent, forecast.bytes_sent);
      EXPECT_GT(measured.messages, 0);
    }
  }
}

TEST(Benchmark, PercentilesAreInOrder) {
  const BenchReport several = benchmark(small_unet(), on_four_ranks(7));
  EXPECT_GT(several.p10_ms, 0);
  EXPECT_LE(several.p10_ms, several.median_ms);
  EXPECT_LE(several.median_ms, several.p90_ms);
  const BenchReport one = benchmark(small_unet(), on_four_ranks(1));
  EXPECT_EQ(one.p10_ms, one.median_ms);
  EXPECT_EQ(one.p90_ms, one.median_ms);
}

TEST(Benchmark, RunsTheStepThatIsProved) {
  const Graph graph = small_unet();
  BenchOptions timed = on_four_ranks(2);
  timed.real = at::kDouble;
  timed.seed = 4;
  VerifyOptions proved;
  proved.seed = timed.seed;
  proved.steps = 1;
  const double loss = verify(graph, proved).losses[0];
  EXPECT_NEAR(benchmark(graph, timed).loss, loss, 1e-10);
  timed.update = true;  // the third step, after two updates
  EXPECT_GT(std::abs(benchmark(graph, timed).loss - loss), 1e-6);
}

TEST(Benchmark, AnUpdateKeepsTheOptimisersState) {
  const Graph graph = small_unet();
  BenchOptions options = on_four_ranks(1);
  const int64_t without = benchmark(graph, options).per_rank[0].parameter_bytes;
  options.update = true;
  EXPECT_EQ(benchmark(graph, options).per_rank[0].parameter_bytes, without * 2)
      << "values and momentum, instead of values";
}

/// Batches of messages that a program starts.
int64_t batches_of(const Program& program) {
  int64_t count = 0;
  for (const Instruction& instruction : program.instructions)
    for (const Posts& round :
         communication_of(instruction, program, program.rank, at::kFloat).rounds)
      count += !round.sends.empty() || !round.receives.empty();
  return count;
}

/// A delay takes its time once for every batch and is seen by nothing else.
TEST(Benchmark, APretendedNetworkTellsWhatIsHidden) {
  const Graph graph = small_unet();
  BenchOptions options = on_four_ranks(2);
  const BenchReport fast = benchmark(graph, options);
  EXPECT_FALSE(fast.hidden_share());
  options.delay = Delay{std::chrono::microseconds(3000), 0};
  const BenchReport slow = benchmark(graph, options);
  const Lowered lowered = lower(graph, options.plan, timed_step(options));
  for (int rank = 0; rank < 4; ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const RankMeasurement& measured = slow.per_rank[rank];
    EXPECT_NEAR(measured.transfer_ms, 3.0 * batches_of(lowered.programs[rank]), 1e-6);
    EXPECT_GE(measured.exposed_ms, 0);
    EXPECT_LE(measured.exposed_ms, measured.transfer_ms);
    EXPECT_LE(measured.exposed_ms, measured.blocked_ms);
    EXPECT_EQ(measured.messages, fast.per_rank[rank].messages);
    EXPECT_EQ(measured.bytes_sent, fast.per_rank[rank].bytes_sent);
  }
  ASSERT_TRUE(slow.hidden_share());
  EXPECT_GE(*slow.hidden_share(), 0);
  EXPECT_LT(*slow.hidden_share(), 1) << "nothing in a network of this size takes milliseconds";
  EXPECT_EQ(slow.loss, fast.loss);
}

TEST(Benchmark, TracesEveryRankWhereThatIsAskedFor) {
  const Graph graph = small_unet();
  BenchOptions options = on_four_ranks(1);
  const BenchReport untraced = benchmark(graph, options);
  EXPECT_TRUE(untraced.trace.empty());
  options.trace = TraceRecorder::Detail::kTasks;
  const BenchReport tasks = benchmark(graph, options);
  options.trace = TraceRecorder::Detail::kKernels;
  const BenchReport kernels = benchmark(graph, options);
  for (const BenchReport& report : {tasks, kernels}) {
    std::set<int> ranks;
    for (const TraceEvent& event : report.trace) ranks.insert(event.rank);
    EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
    EXPECT_EQ(report.rank_names.size(), 4u);
    EXPECT_EQ(report.per_rank[0].messages, untraced.per_rank[0].messages);
  }
  EXPECT_GT(kernels.trace.size(), tasks.trace.size() + 4 * graph.nodes().size());
}

}  // namespace
}  // namespace tessera::benchmark_test
