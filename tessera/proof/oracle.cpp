#include "tessera/proof/oracle.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/random.h"
#include "tessera/data/noise.h"
#include "tessera/graph/gradient_flow.h"
#include "tessera/graph/number_type.h"
#include "tessera/graph/reference.h"
#include "tessera/lower/multigrid.h"

namespace tessera {
namespace {

/// To the next number above or below, by a sign that is drawn for each. Zero and one stay: they are
/// rarely rounded, and there is a border of what some losses take.
template <class Real>
void move_numbers(const RandomKey& key, Real* numbers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const bool up = (key.bits(i / 64) >> (i % 64)) & 1;
    const Real far = std::numeric_limits<Real>::infinity();
    if (numbers[i] != 0 && std::abs(numbers[i]) != 1)
      numbers[i] = std::nextafter(numbers[i], up ? far : -far);
  }
}

/// Narrow numbers have 8 significant bits.
void move_narrow_numbers(const RandomKey& key, const at::Tensor& numbers) {
  const at::Tensor moved = numbers.to(at::kBFloat16);
  auto* bits = reinterpret_cast<uint16_t*>(moved.data_ptr<at::BFloat16>());
  for (int64_t i = 0; i < moved.numel(); ++i) {
    const uint16_t size = bits[i] & 0x7fff;
    const bool up = (key.bits(i / 64) >> (i % 64)) & 1;
    if (size > 1 && size < 0x7f7f && size != 0x3f80) bits[i] += up ? 1 : -1;
  }
  numbers.copy_(moved);
}

void move_by_one_rounding(const RandomKey& key, const at::Tensor& tensor, at::ScalarType real) {
  const at::Tensor dense = tensor.contiguous();
  if (is_narrow(real)) {
    move_narrow_numbers(key, dense);
    if (!dense.is_same(tensor)) tensor.copy_(dense);
    return;
  }
  if (dense.scalar_type() == at::kDouble)
    move_numbers(key, dense.data_ptr<double>(), dense.numel());
  if (dense.scalar_type() == at::kFloat) move_numbers(key, dense.data_ptr<float>(), dense.numel());
  if (!dense.is_same(tensor)) tensor.copy_(dense);
}

StepComparison compare(const Graph& graph, const StepTensors& ours, StepTensors reference) {
  const auto from = [](const std::vector<at::Tensor>& tensors) {
    return [&tensors](size_t i, const at::Tensor& expected) {
      Deviation deviation;
      deviation.add(tensors[i], expected);
      return deviation;
    };
  };
  return {graph, std::move(reference),
          StepComparison::Source{ours.loss, ours.measured, from(ours.outputs),
                                 from(ours.input_gradients), from(ours.gradients),
                                 from(ours.parameters)}};
}

std::vector<StepComparison> measure_once(const Graph& graph, const VerifyOptions& options,
                                         const RandomKey& rounding) {
  Oracle plain(graph, options), moved(graph, options, rounding);
  std::vector<StepComparison> steps;
  for (int64_t step = 0; step < options.steps; ++step) {
    StepTensors reference = plain.step(step);
    steps.push_back(compare(graph, moved.step(step), std::move(reference)));
  }
  return steps;
}

}  // namespace

std::unique_ptr<Optimiser> optimiser_of(const VerifyOptions& options) {
  SgdOptions plain;
  AdamWOptions adaptive;
  plain.momentum = options.momentum;
  if (options.learning_rate) plain.learning_rate = adaptive.learning_rate = *options.learning_rate;
  return options.optimiser == OptimiserKind::kSgd ? sgd(plain) : adamw(adaptive);
}

void load_input(const Graph& graph, ValueId input, const VerifyOptions& options, int64_t step,
                const Box& box, at::Tensor target) {
  if (options.inputs.empty()) return load_noise(graph, input, options.seed, step, box, target);
  const auto& ids = graph.inputs();
  const at::Tensor& given = options.inputs[std::find(ids.begin(), ids.end(), input) - ids.begin()];
  target.copy_(Operand{given, Box::whole(given.sizes().vec())}.view(box));
}

Oracle::Oracle(const Graph& graph, const VerifyOptions& options,
               const std::optional<RandomKey>& rounding)
    : graph_(solve_by_multigrid(graph, options.plan)),
      options_(options),
      rounding_(rounding),
      optimiser_(optimiser_of(options)) {
  for (const Parameter& parameter : graph.parameters()) {
    parameters_.push_back(initial_value(parameter, options.seed, wide(options.real)).contiguous());
    if (rounding && !is_narrow(options.real) && parameter.role != ParameterRole::kBuffer)
      move_by_one_rounding(rounding->with(parameter.name), parameters_.back(), options.real);
  }
}

std::vector<at::Tensor> Oracle::inputs(int64_t step) const {
  const std::vector<bool> has_gradient = feeds_loss(graph_);
  std::vector<at::Tensor> inputs;
  for (ValueId input : graph_.inputs()) {
    const Shape shape = graph_.type(input).shape();
    const bool is_real = graph_.type(input).element == Element::kReal;
    inputs.push_back(at::empty(shape, is_real ? wide(options_.real) : at::kLong));
    load_input(graph_, input, options_, step, Box::whole(shape), inputs.back());
    if (rounding_ && is_real && has_gradient[input])
      move_by_one_rounding(rounding_->with(step).with(graph_.value(input).name), inputs.back(),
                           options_.real);
  }
  return inputs;
}

/// By the norm of all gradients together.
void Oracle::clip(std::vector<at::Tensor>* gradients) const {
  if (options_.clip_norm == 0) return;
  double squares = 0;
  for (const at::Tensor& gradient : *gradients)
    if (gradient.defined()) squares += std::pow(gradient.norm().item<double>(), 2);
  const double norm = std::sqrt(squares);
  if (norm + 1e-6 <= options_.clip_norm) return;
  for (at::Tensor& gradient : *gradients)
    if (gradient.defined()) gradient = gradient * (options_.clip_norm / (norm + 1e-6));
}

StepTensors Oracle::step(int64_t step) {
  WriteValue move_value;
  if (rounding_)
    move_value = [&](const Node& node, const at::Tensor& value) {
      move_by_one_rounding(rounding_->with(step).with(node.name), value, options_.real);
    };
  ReferenceResult result =
      run_reference(graph_, inputs(step), parameters_, options_.seed, step, move_value);
  c10::NoGradGuard no_autograd;
  clip(&result.gradients);
  optimiser_->step(parameters_, result.gradients);
  return {result.loss,
          std::move(result.measured),
          std::move(result.outputs),
          std::move(result.input_gradients),
          std::move(result.gradients),
          parameters_};
}

std::vector<Conditioning> measure_conditioning(const Graph& graph, const VerifyOptions& options) {
  const RandomKey key = RandomKey(options.seed).with("one rounding");
  std::vector<StepComparison> first = measure_once(graph, options, key.with(0));
  std::vector<StepComparison> second = measure_once(graph, options, key.with(1));
  std::vector<Conditioning> steps;
  for (size_t step = 0; step < first.size(); ++step)
    steps.push_back({std::move(first[step]), std::move(second[step])});
  return steps;
}

}  // namespace tessera
