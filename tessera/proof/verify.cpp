#include "tessera/proof/verify.h"

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/data/noise.h"
#include "tessera/graph/gradient_flow.h"
#include "tessera/graph/reference.h"
#include "tessera/optim/optimiser.h"
#include "tessera/proof/comparison.h"
#include "tessera/runtime/holders_agree.h"
#include "tessera/runtime/rank_session.h"

namespace tessera {
namespace {

std::unique_ptr<Optimiser> make_optimiser(const VerifyOptions& options) {
  SgdOptions plain;
  AdamWOptions adaptive;
  plain.momentum = options.momentum;
  if (options.learning_rate) plain.learning_rate = adaptive.learning_rate = *options.learning_rate;
  return options.optimiser == OptimiserKind::kSgd ? sgd(plain) : adamw(adaptive);
}

/// A box of an input in one step: the user's numbers, or noise. Inputs are known by their order,
/// which the lowering keeps.
void load_input(const Graph& graph, ValueId input, const VerifyOptions& options, int64_t step,
                const Box& box, at::Tensor target) {
  if (options.inputs.empty()) return load_noise(graph, input, options.seed, step, box, target);
  const auto& ids = graph.inputs();
  const at::Tensor& given = options.inputs[std::find(ids.begin(), ids.end(), input) - ids.begin()];
  target.copy_(Operand{given, Box::whole(given.sizes().vec())}.view(box));
}

void check_options(const Graph& graph, const VerifyOptions& options) {
  if (options.steps < 1)
    throw_error<InvalidInput>("[verify] {} steps; use at least 1", options.steps);
  if (options.inputs.empty()) return;
  if (options.inputs.size() != graph.inputs().size())
    throw_error<InvalidInput>("[verify] {} inputs are given, the graph has {}",
                              options.inputs.size(), graph.inputs().size());
  for (size_t i = 0; i < options.inputs.size(); ++i)
    if (const Value& value = graph.value(graph.inputs()[i]);
        options.inputs[i].sizes() != value.type.shape())
      throw_error<InvalidInput>("[verify] input {} is given as {}, the graph takes {}", value.name,
                                to_string(options.inputs[i].sizes().vec()),
                                to_string(value.type.shape()));
}

at::ScalarType input_type(const Graph& graph, ValueId input, at::ScalarType real) {
  return graph.type(input).element == Element::kIndex ? at::kLong : real;
}

/// Everything that one step leaves, as whole tensors. Names distinguish the tensors of a report.
struct StepRecord {
  double loss = 0;
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> input_gradients;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> parameters;  // after the update; buffers among them
};

/// As the oracle does it: one vector of all gradients.
void clip(std::vector<at::Tensor>& gradients, double max_norm) {
  if (max_norm == 0) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) flat.push_back(gradient.reshape({-1}));
  const double norm = at::cat(flat).norm().item<double>();
  if (norm + 1e-6 <= max_norm) return;
  for (at::Tensor& gradient : gradients)
    if (gradient.defined()) gradient = gradient * (max_norm / (norm + 1e-6));
}

std::vector<StepRecord> run_oracle(const Graph& graph, const VerifyOptions& options) {
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, options.seed).to(options.real));
  const std::unique_ptr<Optimiser> optimiser = make_optimiser(options);
  std::vector<StepRecord> records;
  for (int64_t step = 0; step < options.steps; ++step) {
    std::vector<at::Tensor> inputs;
    for (ValueId input : graph.inputs()) {
      const Shape shape = graph.type(input).shape();
      inputs.push_back(at::empty(shape, input_type(graph, input, options.real)));
      load_input(graph, input, options, step, Box::whole(shape), inputs.back());
    }
    ReferenceResult result = run_reference(graph, inputs, parameters, options.seed, step);
    c10::NoGradGuard no_autograd;
    clip(result.gradients, options.clip_norm);
    optimiser->step(parameters, result.gradients);
    StepRecord record{result.loss, result.outputs, result.input_gradients, result.gradients, {}};
    for (const at::Tensor& parameter : parameters) record.parameters.push_back(parameter.clone());
    records.push_back(std::move(record));
  }
  return records;
}

/// Whole tensors of zeros: every rank adds what it owns, and the sum over the ranks is the whole.
/// Adding zeros changes no bits. One more count per element shows that each had exactly one owner.
class Collector {
 public:
  explicit Collector(RankSession& session) : session_(session) {}

  at::Tensor collect(const Shape& shape, at::ScalarType real, const std::vector<Operand>& owned) {
    at::Tensor whole = at::zeros(shape, real);
    at::Tensor owners = at::zeros(shape, at::kDouble);
    const Box all = Box::whole(shape);
    for (const Operand& part : owned) {
      Operand{whole, all}.view(part.box).copy_(part.tensor);
      Operand{owners, all}.view(part.box).add_(1);
    }
    sum(whole);
    sum(owners);
    TESSERA_CHECK(owners.eq(1).all().item<bool>(), "an element has no owner, or two");
    return whole;
  }

  /// A whole tensor that one rank gives.
  at::Tensor from(int rank, const at::Tensor& tensor, const Shape& shape, at::ScalarType real) {
    std::vector<Operand> owned;
    if (session_.transport().rank() == rank) owned.push_back({tensor, Box::whole(shape)});
    return collect(shape, real, owned);
  }

 private:
  void sum(at::Tensor& tensor) {
    AllReduce reduce(session_.transport(), session_.everyone(), tensor.data_ptr(), tensor.numel(),
                     tensor.scalar_type() == at::kDouble ? SumType::kFloat64 : SumType::kFloat32);
    reduce.finish();
  }

  RankSession& session_;
};

/// Whole tensors of `ids`; undefined for labels and where a value is not wanted.
std::vector<at::Tensor> collect_results(RankSession& session, const Graph& graph,
                                        const std::vector<Result>& results,
                                        const std::vector<ValueId>& ids,
                                        const std::vector<bool>& wanted, at::ScalarType real) {
  std::vector<at::Tensor> whole;
  for (ValueId id : ids) {
    if (graph.type(id).element != Element::kReal || !wanted[id]) {
      whole.emplace_back();
      continue;
    }
    std::vector<Operand> owned;
    for (const Result& result : results)
      if (result.value == id) owned.push_back({session.executor().result(result), result.view.box});
    whole.push_back(Collector(session).collect(graph.type(id).shape(), real, owned));
  }
  return whole;
}

/// Parameters are taken from the last of their holders.
StepRecord collect_step(RankSession& session, const Lowering& lowering, int64_t step,
                        at::ScalarType real) {
  const Graph& graph = lowering.graph();
  check_holders_agree(session.transport(), lowering, session.parameters().values(), step);
  StepRecord record;
  record.loss = session.executor().loss();
  const std::vector<bool> all(graph.values().size(), true);
  record.outputs =
      collect_results(session, graph, session.program().outputs, graph.outputs(), all, real);
  record.input_gradients = collect_results(session, graph, session.program().input_gradients,
                                           graph.inputs(), feeds_loss(graph), real);
  Collector collector(session);
  for (size_t id = 0; id < graph.parameters().size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    const auto from_holder = [&](const std::vector<at::Tensor>& tensors) {
      return collector.from(lowering.holders()[id].back(), tensors[id], parameter.shape, real);
    };
    record.gradients.push_back(parameter.role == ParameterRole::kTrainable
                                   ? from_holder(session.parameters().gradients())
                                   : at::Tensor());
    record.parameters.push_back(from_holder(session.parameters().values()));
  }
  return record;
}

std::vector<StepRecord> run_placement(const Lowering& lowering, const VerifyOptions& options,
                                      Transport& transport) {
  RankSession session(lowering, transport, {options.real, options.seed, options.threads});
  const std::unique_ptr<Optimiser> optimiser = make_optimiser(options);
  optimiser->keep_state_in(session.parameters().states());
  std::vector<StepRecord> records;
  for (int64_t step = 0; step < options.steps; ++step) {
    StepContext context;
    context.seed = options.seed;
    context.step = step;
    context.load = [&](ValueId input, const Box& box, at::Tensor target) {
      load_input(lowering.graph(), input, options, step, box, target);
    };
    context.update = [&] {
      optimiser->step(session.parameters().values(), session.parameters().gradients());
    };
    session.executor().run(context);
    c10::InferenceMode no_autograd;
    records.push_back(collect_step(session, lowering, step, options.real));
  }
  return records;
}

/// Raises the report's maxima by one step.
void compare_step(const Graph& graph, const StepRecord& ours, const StepRecord& reference,
                  int64_t step, double* worst_of_all, VerifyReport* report) {
  Comparison loss("loss"), outputs("output"), input_gradients("input gradient"),
      gradients("gradient of"), updated("updated"), buffers("buffer");
  loss.add("", at::scalar_tensor(ours.loss, at::kDouble),
           at::scalar_tensor(reference.loss, at::kDouble));
  for (size_t i = 0; i < reference.outputs.size(); ++i)
    outputs.add(graph.value(graph.outputs()[i]).name, ours.outputs[i], reference.outputs[i]);
  for (size_t i = 0; i < reference.input_gradients.size(); ++i)
    input_gradients.add(graph.value(graph.inputs()[i]).name, ours.input_gradients[i],
                        reference.input_gradients[i]);
  for (size_t id = 0; id < graph.parameters().size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    gradients.add(parameter.name, ours.gradients[id], reference.gradients[id]);
    Comparison& kind = parameter.role == ParameterRole::kBuffer ? buffers : updated;
    kind.add(parameter.name, ours.parameters[id], reference.parameters[id]);
  }
  const auto raise = [&](const Comparison& comparison, double* field, double least_scale = 0) {
    std::string where;
    const double worst = comparison.worst(&where, least_scale);
    *field = std::max(*field, worst);
    if (worst <= *worst_of_all) return;
    *worst_of_all = worst;
    report->worst = fmt::format("{} at step {}", where, step);
  };
  raise(loss, &report->loss_rel);
  raise(outputs, &report->output_rel);
  raise(input_gradients, &report->input_grad_rel, 1e-6 * gradients.largest_scale());
  raise(gradients, &report->param_grad_rel);
  raise(updated, &report->updated_param_rel);
  raise(buffers, &report->buffer_rel);
  const double l2 = l2_difference(ours.gradients, reference.gradients);
  if (!(l2 <= report->param_grad_l2)) report->param_grad_l2 = l2;  // NaN stays
}

bool within(const VerifyReport& report, const VerifyOptions& options) {
  if (options.real != at::kDouble) return report.loss_rel <= 1e-5 && report.output_rel <= 1e-4;
  // AdamW divides by the root of tiny second moments: the first update is a sign function.
  const double limit = options.optimiser == OptimiserKind::kAdamW ? 1e-8 : 1e-10;
  for (double difference : {report.loss_rel, report.output_rel, report.input_grad_rel,
                            report.param_grad_rel, report.updated_param_rel, report.buffer_rel})
    if (!(difference <= limit)) return false;
  return true;
}

}  // namespace

LowerOptions verified_step(const VerifyOptions& options) {
  LowerOptions lowering;
  lowering.step = StepKind::kTrain;
  lowering.input_gradients = lowering.keep_outputs = true;
  lowering.recompute = options.recompute;
  lowering.clip_norm = options.clip_norm;
  const std::unique_ptr<Optimiser> optimiser = make_optimiser(options);
  lowering.optimiser = {optimiser->state_copies(), optimiser->counts_steps()};
  lowering.real = options.real;
  lowering.without_rewrites = options.without_rewrites;
  return lowering;
}

VerifyReport verify(const Graph& graph, const Lowering& lowering, const VerifyOptions& options,
                    Transport& transport) {
  check_options(graph, options);
  const std::vector<StepRecord> ours = run_placement(lowering, options, transport);
  VerifyReport report;
  report.ranks = lowering.num_ranks();
  if (transport.rank() != 0) return report;
  const std::vector<StepRecord> reference = run_oracle(graph, options);
  double worst_of_all = 0;
  for (int64_t step = 0; step < options.steps; ++step)
    compare_step(graph, ours[step], reference[step], step, &worst_of_all, &report);
  report.ok = within(report, options);
  for (const StepRecord& record : ours) report.losses.push_back(record.loss);
  report.gradients = ours.front().gradients;
  report.parameters = ours.back().parameters;
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
