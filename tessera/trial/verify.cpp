#include "tessera/trial/verify.h"

#include "tessera/base/error.h"
#include "tessera/data/noise.h"
#include "tessera/graph/reference.h"
#include "tessera/train/optimiser.h"
#include "tessera/trial/comparison.h"
#include "tessera/trial/local_ranks.h"

namespace tessera {
namespace {

std::unique_ptr<Optimiser> make_optimiser(OptimiserKind kind) {
  return kind == OptimiserKind::kSgd ? sgd({}) : adamw({});
}

at::ScalarType input_type(const Graph& graph, ValueId input, at::ScalarType real) {
  return graph.type(input).element == Element::kIndex ? at::kLong : real;
}

/// Everything that one step leaves, as whole tensors. Names tell the tensors of a report apart.
struct StepRecord {
  double loss = 0;
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> input_gradients;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> parameters;  // after the update; buffers among them
};

std::vector<StepRecord> run_oracle(const Graph& graph, const VerifyOptions& options) {
  std::vector<at::Tensor> parameters;
  for (const Parameter& parameter : graph.parameters())
    parameters.push_back(initial_value(parameter, options.seed).to(options.real));
  const std::unique_ptr<Optimiser> optimiser = make_optimiser(options.optimiser);
  std::vector<StepRecord> records;
  for (int64_t step = 0; step < options.steps; ++step) {
    std::vector<at::Tensor> inputs;
    for (ValueId input : graph.inputs()) {
      const Shape shape = graph.type(input).shape();
      inputs.push_back(at::empty(shape, input_type(graph, input, options.real)));
      load_noise(graph, input, options.seed, step, Box::whole(shape), inputs.back());
    }
    ReferenceResult result = run_reference(graph, inputs, parameters, options.seed, step);
    at::NoGradGuard no_autograd;
    optimiser->step(parameters, result.gradients);
    StepRecord record{result.loss, result.outputs, result.input_gradients, result.gradients, {}};
    for (const at::Tensor& parameter : parameters) record.parameters.push_back(parameter.clone());
    records.push_back(std::move(record));
  }
  return records;
}

/// Room for the whole tensors that the ranks fill with their boxes. Boxes are disjoint.
std::vector<StepRecord> empty_records(const Graph& graph, const VerifyOptions& options) {
  std::vector<StepRecord> records(options.steps);
  for (StepRecord& record : records) {
    for (ValueId output : graph.outputs())
      record.outputs.push_back(at::full(graph.type(output).shape(), NAN, options.real));
    for (ValueId input : graph.inputs())
      record.input_gradients.push_back(
          graph.type(input).element == Element::kReal
              ? at::full(graph.type(input).shape(), NAN, options.real)
              : at::Tensor());
  }
  return records;
}

void store(const std::vector<Result>& results, const std::vector<ValueId>& ids,
           const std::vector<at::Tensor>& whole, const Executor& executor) {
  for (const Result& result : results)
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == result.value) {
        const Operand operand{whole[i], Box::whole(whole[i].sizes().vec())};
        operand.view(result.view.box).copy_(executor.result(result));
      }
}

std::vector<StepRecord> run_placement(const Graph& graph, const VerifyOptions& options) {
  LowerOptions lowering;
  lowering.step = StepKind::kTrain;
  lowering.input_gradients = lowering.keep_outputs = true;
  lowering.recompute = options.recompute;
  const Lowered lowered = lower(graph, options.plan, lowering);
  std::vector<StepRecord> records = empty_records(graph, options);
  LocalOptions local{options.real, options.seed, options.threads,
                     std::chrono::milliseconds(int64_t(options.timeout_seconds * 1000))};
  run_local(lowered, local, [&](LocalRank& self) {
    const std::unique_ptr<Optimiser> optimiser = make_optimiser(options.optimiser);
    for (int64_t step = 0; step < options.steps; ++step) {
      StepContext context;
      context.seed = options.seed;
      context.step = step;
      context.load = [&](ValueId input, const Box& box, at::Tensor target) {
        load_noise(lowered.graph, input, options.seed, step, box, target);
      };
      context.update = [&] {
        optimiser->step(self.parameters->values(), self.parameters->gradients());
      };
      self.executor->run(context);
      const Program& program = lowered.programs[self.rank];
      StepRecord& record = records[step];
      store(program.outputs, lowered.graph.outputs(), record.outputs, *self.executor);
      store(program.input_gradients, lowered.graph.inputs(), record.input_gradients, *self.executor);
      // The last rank: it has the least to do with the first one, and all must agree.
      if (self.rank + 1 < program.num_ranks) continue;
      record.loss = self.executor->loss();
      for (const at::Tensor& gradient : self.parameters->gradients())
        record.gradients.push_back(gradient.defined() ? gradient.clone() : gradient);
      for (const at::Tensor& value : self.parameters->values())
        record.parameters.push_back(value.clone());
    }
  });
  return records;
}

/// Raises the report's maxima by one step.
void compare_step(const Graph& graph, const StepRecord& ours, const StepRecord& reference,
                  int64_t step, double* worst_of_all, VerifyReport* report) {
  Comparison loss("loss"), outputs("output"), input_gradients("input gradient"),
      gradients("gradient of"), updated("updated"), buffers("buffer");
  loss.add("", at::scalar_tensor(ours.loss, at::kDouble), at::scalar_tensor(reference.loss, at::kDouble));
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
  const auto raise = [&](const Comparison& comparison, double* field) {
    std::string where;
    const double worst = comparison.worst(&where);
    *field = std::max(*field, worst);
    if (worst <= *worst_of_all) return;
    *worst_of_all = worst;
    report->worst = fmt::format("{} at step {}", where, step);
  };
  raise(loss, &report->loss_rel);
  raise(outputs, &report->output_rel);
  raise(input_gradients, &report->input_grad_rel);
  raise(gradients, &report->param_grad_rel);
  raise(updated, &report->updated_param_rel);
  raise(buffers, &report->buffer_rel);
  report->param_grad_l2 =
      std::max(report->param_grad_l2, l2_difference(ours.gradients, reference.gradients));
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

VerifyReport verify(const Graph& graph, const VerifyOptions& options) {
  const std::vector<StepRecord> ours = run_placement(graph, options);
  const std::vector<StepRecord> reference = run_oracle(graph, options);
  VerifyReport report;
  report.ranks = options.plan.num_ranks();
  double worst_of_all = 0;
  for (int64_t step = 0; step < options.steps; ++step)
    compare_step(graph, ours[step], reference[step], step, &worst_of_all, &report);
  report.ok = within(report, options);
  return report;
}

}  // namespace tessera
