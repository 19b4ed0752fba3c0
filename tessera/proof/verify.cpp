#include "tessera/proof/verify.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/lower/multigrid.h"
#include "tessera/proof/judgement.h"
#include "tessera/proof/oracle.h"
#include "tessera/proof/patience.h"
#include "tessera/proof/solve_error.h"
#include "tessera/proof/step_on_ranks.h"
#include "tessera/runtime/holders_agree.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/runtime/small_pages.h"
#include "tessera/runtime/thread_count.h"

namespace tessera {
namespace {

void check_options(const Graph& graph, const VerifyOptions& options) {
  if (options.steps < 1)
    throw_error<InvalidInput>("[verify] {} steps; use at least 1", options.steps);
  if (options.inputs.empty()) return;
  if (options.inputs.size() != graph.inputs().size())
    throw_error<InvalidInput>("[verify] given {}, the graph has {}",
                              counted(std::ssize(options.inputs), "input"), graph.inputs().size());
  for (size_t i = 0; i < options.inputs.size(); ++i)
    if (const Value& value = graph.value(graph.inputs()[i]);
        options.inputs[i].sizes() != value.type.shape())
      throw_error<InvalidInput>("[verify] input {} is given as {}, the graph takes {}", value.name,
                                to_string(options.inputs[i].sizes().vec()),
                                to_string(value.type.shape()));
}

/// Before a wait of the others could run out of time.
std::chrono::milliseconds sign_of_life(const VerifyOptions& options) {
  using std::chrono::milliseconds;
  return std::clamp(timeout_of(options.timeout_seconds) / 4, milliseconds(1), milliseconds(1000));
}

/// One rank's part of the steps; on rank 0 the oracle's, too.
class Steps {
 public:
  Steps(const Graph& graph, const Lowering& lowering, const VerifyOptions& options,
        Transport& transport)
      : lowering_(lowering),
        options_(options),
        session_(lowering, transport,
                 {options.real, options.seed, options.threads, options.device}),
        optimiser_(optimiser_of(options)) {
    optimiser_->keep_state_in(session_.parameters().states());
    if (is_first()) oracle_.emplace(graph, options);
  }

  /// Collective over all ranks.
  void run(int64_t step, VerifyReport* report) {
    run_placement(step);
    const double loss = session_.executor().loss();
    StepTensors reference;
    while_others_wait(session_.transport(), sign_of_life(options_), [&] {
      set_rank_threads(options_.threads);
      release_cached_memory();  // blocks of the step's sizes are of no use to the oracle
      reference = oracle_->step(step);
      release_cached_memory();
    });
    c10::InferenceMode no_autograd;
    check_holders(step);
    if (!is_first()) return send_step(session_, lowering_);
    report->device = name_of(session_.device().place());
    report->losses.push_back(loss);
    if (step == 0) {
      const std::vector<double> measured = session_.executor().measured();
      report->residual = solve_residual(measured);
      report->gradient_residual = solve_gradient_residual(measured);
    }
    KeptTensors kept;
    if (options_.keep_gradients && step == 0) kept.gradients = &report->gradients;
    if (options_.keep_parameters && step == options_.steps - 1)
      kept.parameters = &report->parameters;
    compared_.push_back(compare_step(session_, lowering_, std::move(reference), kept));
  }

  /// On rank 0, in the steps' order.
  std::vector<StepComparison> take_compared() { return std::move(compared_); }

 private:
  bool is_first() { return session_.transport().rank() == 0; }

  /// Only one holder of a parameter is compared: the others must have the same bits, of its value
  /// and of its gradient.
  void check_holders(int64_t step) {
    const ParameterStore& store = session_.parameters();
    check_holders_agree(session_.transport(), lowering_, store.values(), step);
    std::vector<at::Tensor> gradients = store.gradients();
    for (size_t id = 0; id < gradients.size(); ++id)
      if (!gradients[id].defined()) gradients[id] = store.values()[id];  // it has none
    check_holders_agree(session_.transport(), lowering_, gradients, step);
  }

  void run_placement(int64_t step) {
    StepContext context;
    context.seed = options_.seed;
    context.step = step;
    context.load = [&](ValueId input, const Box& box, at::Tensor target) {
      load_input(lowering_.graph(), input, options_, step, box, target);
    };
    context.update = [&] {
      optimiser_->step(session_.parameters().values(), session_.parameters().gradients());
    };
    session_.executor().run(context);
  }

  const Lowering& lowering_;
  const VerifyOptions& options_;
  RankSession session_;
  std::unique_ptr<Optimiser> optimiser_;
  std::optional<Oracle> oracle_;  // on rank 0
  std::vector<StepComparison> compared_;
};

}  // namespace

LowerOptions verified_step(const VerifyOptions& options) {
  LowerOptions lowering;
  lowering.step = StepKind::kTrain;
  lowering.input_gradients = lowering.keep_outputs = true;
  lowering.recompute = options.recompute;
  lowering.clip_norm = options.clip_norm;
  const std::unique_ptr<Optimiser> optimiser = optimiser_of(options);
  lowering.optimiser = {optimiser->state_copies(), optimiser->counts_steps()};
  lowering.real = options.real;
  lowering.device = options.device.type;
  lowering.without_rewrites = options.without_rewrites;
  return lowering;
}

VerifyReport verify(const Graph& graph, const Lowering& lowering, const VerifyOptions& options,
                    Transport& transport) {
  check_options(graph, options);
  const SmallPages exact_sizes;  // the oracle comes on top of what the ranks hold
  VerifyReport report;
  report.ranks = lowering.num_ranks();
  std::vector<StepComparison> compared;
  {
    Steps steps(graph, lowering, options, transport);
    for (int64_t step = 0; step < options.steps; ++step) steps.run(step, &report);
    compared = steps.take_compared();
  }
  release_cached_memory();
  barrier(transport, everyone(transport.size()));  // all ranks' memory is free
  if (transport.rank() != 0) return report;
  if (options.plan.multigrid) report.solve_error = solve_error(graph, options);
  judge_strictly(compared, options, &report);
  if (report.ok) return report;
  judge_by_conditioning(compared, measure_conditioning(graph, options), options, &report);
  return report;
}

VerifyReport verify(const Graph& graph, const VerifyOptions& options) {
  const Lowering lowering(graph, options.plan, verified_step(options));
  lowering.prove();
  return report_from_threads<VerifyReport>(
      options.plan.num_ranks(), options.threads, options.timeout_seconds,
      [&](Transport& transport) { return verify(graph, lowering, options, transport); });
}

}  // namespace tessera
