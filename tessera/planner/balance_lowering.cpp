#include "tessera/planner/balance_lowering.h"

#include <utility>

#include "tessera/lower/lower.h"
#include "tessera/simulate/simulator.h"

namespace tessera {
namespace {

int64_t optimiser_bytes(const Graph& graph, const Program& program, const BalanceOptions& options) {
  int64_t elements = 0;
  for (ParameterId id : program.parameters)
    if (graph.parameters()[id].role == ParameterRole::kTrainable)
      elements += graph.parameters()[id].numel();
  return elements * options.optimiser_copies * element_bytes(ElementType::kReal, options.real);
}

double rank_bytes(const Graph& graph, const Program& program, const BalanceOptions& options) {
  const RankForecast forecast = simulate(program, graph, options.real);
  return static_cast<double>(forecast.peak_value_bytes + forecast.parameter_bytes +
                             optimiser_bytes(graph, program, options));
}

}  // namespace

LoweredStages lower_stages(const Graph& graph, const Plan& plan, const BalanceOptions& options) {
  Lowered lowered = lower(graph, plan, {.step = StepKind::kGradient});
  LoweredStages result;
  for (int stage = 0; stage < plan.num_stages(); ++stage) {
    int largest = -1;
    double most = -1;
    for (int rank : plan.stage_ranks(stage)) {
      const double bytes = rank_bytes(lowered.graph, lowered.programs[rank], options);
      if (bytes <= most) continue;
      largest = rank;
      most = bytes;
    }
    result.programs.push_back(std::move(lowered.programs[largest]));
    result.bytes.push_back(most);
  }
  result.graph = std::move(lowered.graph);
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
