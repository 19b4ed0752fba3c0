#include "tessera/planner/balance_lowering.h"

#include <utility>

#include "tessera/lower/lower.h"
#include "tessera/lower/rank_classes.h"
#include "tessera/simulate/simulator.h"

namespace tessera {

/// One rank of each class is lowered: the others hold as much.
LoweredStages lower_stages(const Graph& graph, const Plan& plan, const BalanceOptions& options) {
  LowerOptions training;
  training.step = StepKind::kTrain;
  training.optimiser.copies = static_cast<int>(options.optimiser_copies);
  training.real = options.real;
  training.device = options.device;
  const Lowering lowering(graph, plan, training);
  LoweredStages result;
  result.graph = lowering.graph();
  result.programs.resize(plan.num_stages());
  result.bytes.resize(plan.num_stages(), -1);
  for (const std::vector<int>& alike : rank_classes(lowering.step())) {
    const int stage = plan.stage_of_rank(alike.front());
    Program program = lowering.program(alike.front());
    const RankForecast forecast = simulate(program, options.real);
    const auto bytes = static_cast<double>(forecast.peak_value_bytes + forecast.parameter_bytes);
    if (bytes <= result.bytes[stage]) continue;
    result.bytes[stage] = bytes;
    result.programs[stage] = std::move(program);
  }
  return result;
}

std::vector<double> simulated_stage_bytes(const Graph& graph, const Plan& plan,
                                          const StagedSegments& assignment,
                                          const BalanceOptions& options) {
  Plan staged = plan;
  staged.stage_of = stage_by_name(graph, assignment);
  return lower_stages(graph, staged, options).bytes;
}

}  // namespace tessera
