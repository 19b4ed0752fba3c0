#include "tessera/proof/step_comparison.h"

#include <utility>

namespace tessera {
namespace {

template <class Name, class Kind>
void compare_list(std::vector<at::Tensor>& references, const StepComparison::Compare& compare,
                  const Name& name, const Kind& kind) {
  for (size_t i = 0; i < references.size(); ++i) {
    const at::Tensor reference = std::exchange(references[i], at::Tensor());
    if (!reference.defined()) continue;
    const Deviation deviation = compare(i, reference);
    if (reference.numel() > 0) kind(i).add(name(i), deviation);
  }
}

}  // namespace

TensorKind kind_of(const Parameter& parameter) {
  return parameter.role == ParameterRole::kBuffer ? TensorKind::kBuffer : TensorKind::kUpdated;
}

StepComparison::StepComparison(const Graph& graph, StepTensors reference, const Source& source)
    : kinds_{Comparison("loss"),        Comparison("output"),  Comparison("input gradient"),
             Comparison("gradient of"), Comparison("updated"), Comparison("buffer")} {
  of(TensorKind::kLoss)
      .add("", at::scalar_tensor(source.loss, at::kDouble),
           at::scalar_tensor(reference.loss, at::kDouble));
  if (!reference.measured.empty())
    of(TensorKind::kLoss)
        .add("measured", at::tensor(source.measured, at::kDouble),
             at::tensor(reference.measured, at::kDouble));
  const auto output_name = [&](size_t i) { return graph.value(graph.outputs()[i]).name; };
  const auto input_name = [&](size_t i) { return graph.value(graph.inputs()[i]).name; };
  const auto parameter_name = [&](size_t id) { return graph.parameters()[id].name; };
  const auto always = [&](TensorKind kind) {
    return [this, kind](size_t) -> Comparison& { return of(kind); };
  };
  compare_list(reference.outputs, source.output, output_name, always(TensorKind::kOutput));
  compare_list(reference.input_gradients, source.input_gradient, input_name,
               always(TensorKind::kInputGradient));
  compare_list(reference.gradients, source.gradient, parameter_name, always(TensorKind::kGradient));
  compare_list(reference.parameters, source.parameter, parameter_name,
               [&](size_t id) -> Comparison& { return of(kind_of(graph.parameters()[id])); });
}

double StepComparison::least_scale(TensorKind kind) const {
  return kind == TensorKind::kInputGradient ? 1e-6 * of(TensorKind::kGradient).largest_scale() : 0;
}

double StepComparison::relative(TensorKind kind, size_t index) const {
  return of(kind).relative(index, least_scale(kind));
}

double StepComparison::worst(TensorKind kind, std::string* where) const {
  return of(kind).worst(where, least_scale(kind));
}

}  // namespace tessera
