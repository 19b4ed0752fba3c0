#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "tessera/runtime/executor.h"

namespace tessera {

/// Autograd works on these few whole weights: they are small beside the activations, and the oracle
/// has the same formulas. Its memory is booked as workspace.
void Executor::execute(const Derive& derive) {
  const c10::InferenceMode with_autograd(false);
  const c10::AutoGradMode records(derive.trains);
  const Derivation& derivation = graph_.derivations()[derive.derivation];
  KeptDerivation kept;
  for (size_t i = 0; i < derive.sources.size(); ++i) {
    kept.sources.push_back(tensors_[derive.sources[i]].detach().clone());
    if (derive.trains && graph_.is_trained(derivation.sources[i]))
      kept.sources.back().requires_grad_(true);
  }
  Derived derived = tessera::derive(
      derivation, kept.sources, derive.trains ? DerivationMode::kTrain : DerivationMode::kEvaluate);
  tensors_[derive.result].copy_(derived.result.detach());
  for (const auto& [source, value] : derived.updates) tensors_[derive.sources[source]].copy_(value);
  if (!derive.trains || !derived.result.requires_grad()) return;
  kept.result = derived.result;
  derivations_[derive.derivation] = std::move(kept);
}

void Executor::execute(const DeriveGradients& derive) {
  const auto found = derivations_.find(derive.derivation);
  if (found == derivations_.end()) return;  // none of its sources is trained
  const c10::InferenceMode with_autograd(false);
  const c10::AutoGradMode records(true);
  const KeptDerivation& kept = found->second;
  const at::Tensor gradient = view(derive.gradient).detach().clone().view(kept.result.sizes());
  std::vector<at::Tensor> trained;
  std::vector<View> targets;
  for (size_t i = 0; i < kept.sources.size(); ++i) {
    if (!kept.sources[i].requires_grad() || derive.gradients[i].buffer < 0) continue;
    trained.push_back(kept.sources[i]);
    targets.push_back(derive.gradients[i]);
  }
  const auto gradients =
      torch::autograd::grad({kept.result}, trained, {gradient}, /*retain_graph=*/false,
                            /*create_graph=*/false, /*allow_unused=*/true);
  const c10::InferenceMode no_autograd;
  for (size_t i = 0; i < trained.size(); ++i)
    if (gradients[i].defined()) view(targets[i]).add_(gradients[i].reshape({-1}));
  derivations_.erase(found);
}

}  // namespace tessera
