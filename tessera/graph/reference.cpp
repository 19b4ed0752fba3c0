#include "tessera/graph/reference.h"

#include <torch/torch.h>

#include "tessera/base/error.h"
#include "tessera/graph/gradient_flow.h"

namespace tessera {
namespace {

std::vector<at::Tensor> pick(const std::vector<at::Tensor>& tensors, const std::vector<int>& ids) {
  std::vector<at::Tensor> picked;
  for (int id : ids) picked.push_back(tensors[id]);
  return picked;
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
    at::NoGradGuard no_gradients;
    parameters[derivation.result].copy_(derived.result);
    for (const auto& [source, value] : derived.updates)
      parameters[derivation.sources[source]].copy_(value);
  }
}

}  // namespace

ReferenceResult run_reference(const Graph& graph, const std::vector<at::Tensor>& inputs,
                              std::vector<at::Tensor>& parameters, uint64_t seed, int64_t step) {
  at::AutoGradMode enable_autograd(true);
  std::vector<at::Tensor> values(graph.values().size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor leaf = inputs[i].detach();
    if (leaf.is_floating_point()) leaf = leaf.clone().requires_grad_(true);
    values[graph.inputs()[i]] = leaf;
  }
  std::vector<at::Tensor> leaves;
  for (size_t id = 0; id < parameters.size(); ++id) {
    const bool trainable = graph.parameters()[id].role == ParameterRole::kTrainable;
    leaves.push_back(trainable ? parameters[id].detach().clone().requires_grad_(true)
                               : parameters[id]);
  }
  derive_weights(graph, parameters, leaves);

  at::Tensor loss;
  for (const Node& node : graph.nodes()) {
    ReferenceArgs args{&node.name,
                       seed,
                       step,
                       pick(values, node.inputs),
                       pick(leaves, node.parameters),
                       pick(leaves, node.buffers)};
    at::Tensor result = node.op->reference(args);
    if (node.op->is_loss())
      loss = loss.defined() ? loss + result : result;
    else
      TESSERA_CHECK(result.sizes().vec() == node.types.output.shape(),
                    "{}: {} inferred, {} computed", node.name, to_string(node.types.output),
                    to_string(result.sizes().vec()));
    values[node.output] = result;
  }

  ReferenceResult result;
  for (ValueId output : graph.outputs()) result.outputs.push_back(values[output].detach());
  if (!loss.defined()) return result;
  if (loss.requires_grad()) loss.backward();
  result.loss = loss.item<double>();
  const std::vector<bool> has_gradient = feeds_loss(graph);
  for (ValueId input : graph.inputs())
    result.input_gradients.push_back(values[input].requires_grad() && has_gradient[input]
                                         ? gradient_or_zeros(values[input])
                                         : at::Tensor());
  for (size_t id = 0; id < leaves.size(); ++id)
    result.gradients.push_back(leaves[id].is_leaf() && leaves[id].requires_grad()
                                   ? gradient_or_zeros(leaves[id])
                                   : at::Tensor());
  return result;
}

}  // namespace tessera
