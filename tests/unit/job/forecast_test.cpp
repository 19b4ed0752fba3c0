#include "tessera/job/forecast.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tessera/base/quantity.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/refusal.h"

namespace tessera::forecast_test {
namespace {

/// Batch norms, whose running statistics no optimiser has a state for, on a cut image.
Job unet_job() {
  Job job = make_job(build_model("unet2d:base=2,depth=2", {2, 3, 16, 16}));
  job.plan.space = {2, 3};
  return job;
}

int64_t needed(const RankForecast& forecast) {
  return forecast.arena_bytes + forecast.parameter_bytes;
}

TEST(Forecast, IsWhatTheSimulatorPredicts) {
  for (const at::ScalarType real : {at::kFloat, at::kDouble}) {
    Job job = unet_job();
    job.real = real;
    const Lowering lowering(job.graph(), job.plan);
    const auto forecasts = forecast_within_limits(job, lowering, Where::kAnywhere).ranks;
    ASSERT_EQ(std::ssize(forecasts), lowering.num_ranks());
    for (int rank = 0; rank < lowering.num_ranks(); ++rank) {
      const RankForecast expected = simulate(lowering.program(rank), real);
      EXPECT_EQ(forecasts[rank].peak_value_bytes, expected.peak_value_bytes);
      EXPECT_EQ(forecasts[rank].reduction_bytes, expected.reduction_bytes);
      EXPECT_EQ(forecasts[rank].parameter_bytes, expected.parameter_bytes);
      EXPECT_EQ(forecasts[rank].messages, expected.messages);
      EXPECT_EQ(forecasts[rank].bytes_sent, expected.bytes_sent);
    }
  }
}

TEST(Forecast, TheLimitMayBeMetToTheByte) {
  Job job = unet_job();
  const Lowering lowering(job.graph(), job.plan,
                          {.step = StepKind::kTrain, .optimiser = {.copies = 1}});
  const auto forecasts = forecast_within_limits(job, lowering, Where::kAnywhere).ranks;
  const auto largest =
      std::max_element(forecasts.begin(), forecasts.end(),
                       [](const auto& a, const auto& b) { return needed(a) < needed(b); });
  job.memory_limit = needed(*largest);
  EXPECT_NO_THROW(forecast_within_limits(job, lowering, Where::kAnywhere));
  job.memory_limit = needed(*largest) - 1;
  const std::string message =
      message_of<OutOfMemory>([&] { forecast_within_limits(job, lowering, Where::kAnywhere); });
  EXPECT_EQ(message,
            fmt::format("[--memory] rank {}/6: needs {} (values {}, parameters {}), the limit is "
                        "{}; use more workers, a smaller input or a smaller batch",
                        largest - forecasts.begin(), format_bytes(needed(*largest)),
                        format_bytes(largest->arena_bytes),
                        format_bytes(largest->parameter_bytes), format_bytes(*job.memory_limit)));
}

TEST(Forecast, TheOptimisersStateCountsWhereItsParametersAre) {
  Job job = unet_job();
  job.real = at::kDouble;
  job.plan = {};
  job.plan.stages = {{1, 2}, {}};
  int64_t trainable = 0, on_last_stage = 0;
  for (const Node& node : job.graph().nodes()) {
    const bool is_late =
        node.name.starts_with("dec") || node.name.starts_with("head") || node.op->is_loss();
    job.plan.stage_of[node.name] = is_late ? 1 : 0;
    for (ParameterId id : node.parameters) {
      trainable += job.graph().parameters()[id].numel();
      if (is_late) on_last_stage += job.graph().parameters()[id].numel();
    }
  }
  ASSERT_GT(on_last_stage, 0);
  ASSERT_LT(on_last_stage, trainable);
  const auto with_copies = [&](int copies) {
    const Lowering lowering(job.graph(), job.plan,
                            {.step = StepKind::kTrain, .optimiser = {.copies = copies}});
    return forecast_within_limits(job, lowering, Where::kAnywhere).ranks;
  };
  const auto without = with_copies(0), with_two = with_copies(2);
  const auto state_bytes = [&](int rank) {
    return with_two[rank].parameter_bytes - without[rank].parameter_bytes;
  };
  EXPECT_EQ(state_bytes(0), 2 * 8 * (trainable - on_last_stage));
  EXPECT_EQ(state_bytes(1), state_bytes(0));
  EXPECT_EQ(state_bytes(2), 2 * 8 * on_last_stage);
}

TEST(Forecast, RanksOfThisMachineShareItsMemory) {
  Job job = make_job(build_model("cnn2d:base=4,depth=2,norm=none", {1, 1, 1 << 20, 1 << 20}));
  job.plan.space = {2, 1};
  const Lowering lowering(job.graph(), job.plan);
  EXPECT_EQ(forecast_within_limits(job, lowering, Where::kAnywhere).ranks.size(), 2u);
  const std::string message =
      message_of<OutOfMemory>([&] { forecast_within_limits(job, lowering, Where::kThisMachine); });
  EXPECT_EQ(message.find("[memory] 2 workers would take "), 0u) << message;
}

/// On rank 0: the placement's part and the oracle, or several oracles when the placement has gone.
TEST(Forecast, TheOracleCountsAgainstTheLimit) {
  Job job = unet_job();
  const Lowering lowering(job.graph(), job.plan);
  const Forecast placement = forecast_within_limits(job, lowering, Where::kAnywhere);
  const OracleBytes large{.values = 1 << 20, .weights = 1000, .kept = 10};
  job.memory_limit = needed(placement.ranks[0]) + (1 << 20) + 1010;
  EXPECT_NO_THROW(check_oracle_fits(job, placement, large, {}));
  --*job.memory_limit;
  const std::string message =
      message_of<OutOfMemory>([&] { check_oracle_fits(job, placement, large, {}); });
  EXPECT_EQ(
      message.find("[--memory] verify compares with one worker that trains the whole network, "
                   "which takes 1.00 MiB on rank 0 (values 1.00 MiB, weights 1000 B)"),
      0u)
      << message;
  const OracleBytes heavy{.values = 10, .weights = 1 << 20, .kept = 0};
  job.memory_limit = 10 + 2 * (1 << 20);
  EXPECT_NO_THROW(check_oracle_fits(job, placement, heavy, {}));
  --*job.memory_limit;
  EXPECT_THROW(check_oracle_fits(job, placement, heavy, {}), OutOfMemory);
}

TEST(Forecast, TheOracleCountsAgainstWhatItsMachineHasFree) {
  const Job job = unet_job();
  const Lowering lowering(job.graph(), job.plan);
  const Forecast placement = forecast_within_limits(job, lowering, Where::kAnywhere);
  const OracleBytes huge{.values = int64_t{1} << 55, .weights = 0, .kept = 0};
  EXPECT_NO_THROW(check_oracle_fits(job, placement, huge, {}));
  const std::string message =
      message_of<OutOfMemory>([&] { check_oracle_fits(job, placement, huge, {0}); });
  EXPECT_EQ(message.find("[memory] verify compares with one worker"), 0u) << message;
}

TEST(Forecast, ThreadsAreOnThisMachineAndProcessesAnywhere) {
  Job job = unet_job();
  EXPECT_EQ(where_ranks_live(job), Where::kThisMachine);
  job.launch.launch = "mpi";
  EXPECT_EQ(where_ranks_live(job), Where::kAnywhere);
}

}  // namespace
}  // namespace tessera::forecast_test
