#include "tessera/graph/reference.h"

#include <torch/torch.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/gradient_flow.h"
#include "tessera/graph/step_numbers.h"

namespace tessera {
namespace {

std::vector<at::Tensor> pick(const std::vector<at::Tensor>& tensors, const std::vector<int>& ids) {
  std::vector<at::Tensor> picked;
  for (int id : ids) picked.push_back(tensors[id]);
  return picked;
}

/// A leaf on the same memory: nothing is copied, and nothing may write to it before backward.
at::Tensor leaf_of(const at::Tensor& tensor) { return tensor.detach().requires_grad_(true); }

/// Lets go of what no later node reads; what backward needs of it, autograd keeps.
void release_after(const Graph& graph, NodeId last, std::vector<at::Tensor>* values) {
  const std::vector<ValueId>& outputs = graph.outputs();
  for (ValueId input : graph.node(last).inputs) {
    const std::vector<Use>& uses = graph.value(input).uses;
    const bool is_read_later =
        std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.node > last; });
    if (!is_read_later && std::find(outputs.begin(), outputs.end(), input) == outputs.end())
      (*values)[input].reset();
  }
}

at::Tensor gradient_or_zeros(const at::Tensor& leaf) {
  return leaf.grad().defined() ? leaf.grad().detach() : at::zeros_like(leaf.detach());
}

/// Puts computed weights among the leaves, as functions of the others.
void derive_weights(const Graph& graph, std::vector<at::Tensor>& parameters,
                    std::vector<at::Tensor>& leaves) {
  for (const Derivation& derivation : graph.derivations()) {
    const Derived derived =
        derive(derivation, pick(leaves, derivation.sources), DerivationMode::kTrain);
    leaves[derivation.result] = derived.result;
    c10::NoGradGuard no_gradients;
    parameters[derivation.result].copy_(derived.result);
    for (const auto& [source, value] : derived.updates)
      parameters[derivation.sources[source]].copy_(value);
  }
}

}  // namespace

ReferenceResult run_reference(const Graph& graph, const std::vector<at::Tensor>& inputs,
                              std::vector<at::Tensor>& parameters, uint64_t seed, int64_t step,
                              const WriteValue& write_value) {
  at::AutoGradMode enable_autograd(true);
  std::vector<at::Tensor> values(graph.values().size()), input_leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    input_leaves.push_back(inputs[i].is_floating_point() ? leaf_of(inputs[i]) : inputs[i].detach());
    values[graph.inputs()[i]] = input_leaves.back();
  }
  std::vector<at::Tensor> leaves;
  for (size_t id = 0; id < parameters.size(); ++id) {
    const bool trainable = graph.parameters()[id].role == ParameterRole::kTrainable;
    leaves.push_back(trainable ? leaf_of(parameters[id]) : parameters[id]);
  }
  derive_weights(graph, parameters, leaves);

  at::Tensor loss, numbers = at::zeros({num_step_numbers(graph)}, at::kDouble);
  for (NodeId id = 0; id < std::ssize(graph.nodes()); ++id) {
    const Node& node = graph.node(id);
    ReferenceArgs args{&node.name,
                       seed,
                       step,
                       pick(values, node.inputs),
                       pick(leaves, node.parameters),
                       pick(leaves, node.buffers)};
    at::Tensor result = node.op->reference(args);
    const Range at = step_numbers(*node.op);
    if (const GradientMeasurement* measurement = gradient_measurement(*node.op))
      result.register_hook(
          [measurement, own = numbers.slice(0, at.begin, at.end)](const at::Tensor& gradient) {
            own.add_(measurement->measured(gradient.detach()));
          });
    else if (at.begin > 0)
      numbers.slice(0, at.begin, at.end).add_(result);
    else if (node.op->is_loss())
      loss = loss.defined() ? loss + result : result;
    if (!node.op->is_loss())
      TESSERA_CHECK(result.sizes().vec() == node.types.output.shape(),
                    "{}: {} inferred, {} computed", node.name, to_string(node.types.output),
                    to_string(result.sizes().vec()));
    if (write_value) write_value(node, result.variable_data());  // no part of what autograd records
    values[node.output] = result;
    release_after(graph, id, &values);
  }

  ReferenceResult result;
  for (ValueId output : graph.outputs()) result.outputs.push_back(values[output].detach());
  if (loss.defined() && loss.requires_grad()) loss.backward();
  if (numbers.numel() > 1)
    result.measured.assign(numbers.data_ptr<double>() + 1,
                           numbers.data_ptr<double>() + numbers.numel());
  if (!loss.defined()) return result;
  result.loss = loss.item<double>();
  const std::vector<bool> has_gradient = feeds_loss(graph);
  for (size_t i = 0; i < input_leaves.size(); ++i)
    result.input_gradients.push_back(input_leaves[i].requires_grad() &&
                                             has_gradient[graph.inputs()[i]]
                                         ? gradient_or_zeros(input_leaves[i])
                                         : at::Tensor());
  for (size_t id = 0; id < leaves.size(); ++id)
    result.gradients.push_back(leaves[id].is_leaf() && leaves[id].requires_grad()
                                   ? gradient_or_zeros(leaves[id])
                                   : at::Tensor());
  return result;
}

}  // namespace tessera
