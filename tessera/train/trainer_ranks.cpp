#include <map>
#include <numeric>

#include "tessera/graph/number_type.h"
#include "tessera/train/collect.h"
#include "tessera/train/trainer.h"

// Where the ranks meet outside of a step: what rank 0 collects from them, and what they agree on.

namespace tessera {

/// Collective. On rank 0 those of `own` (as Graph::parameters()) that `ids` name, from whoever
/// holds them, the others undefined; nothing on the other ranks.
std::vector<at::Tensor> Trainer::whole(const std::vector<at::Tensor>& own,
                                       const std::vector<ParameterId>& ids) {
  std::vector<HeldTensor> tensors;
  for (ParameterId id : ids)
    tensors.push_back({holders()[id], job_.graph.parameters()[id].shape, wide(job_.real), own[id]});
  const std::vector<at::Tensor> collected = collect_on_first(*transport_, tensors);
  if (!is_first()) return {};
  std::vector<at::Tensor> all(own.size());
  for (size_t i = 0; i < ids.size(); ++i) all[ids[i]] = collected[i];
  return all;
}

std::vector<at::Tensor> Trainer::whole_parameters() {
  std::vector<ParameterId> ids(job_.graph.parameters().size());
  std::iota(ids.begin(), ids.end(), 0);
  return whole(parameters_.values(), ids);
}

std::vector<at::Tensor> Trainer::whole_gradients() {
  std::vector<ParameterId> ids;
  for (size_t id = 0; id < job_.graph.parameters().size(); ++id)
    if (job_.graph.parameters()[id].role == ParameterRole::kTrainable)
      ids.push_back(static_cast<ParameterId>(id));
  return whole(parameters_.gradients(), ids);
}

/// Collective. On rank 0 the state of all parameters, nothing on the other ranks.
NamedTensors Trainer::whole_optimiser_state() {
  const NamedTensors own = optimiser_->state(job_.graph);
  // A rank without trainable parameters cannot tell by itself whether there is a state.
  if (sum_over_ranks(own.empty() ? 0 : 1) == 0) return {};
  const std::map<std::string, at::Tensor> own_by_name(own.begin(), own.end());
  const std::vector<StateTensor> layout = optimiser_->state_layout(job_.graph, wide(job_.real));
  std::vector<HeldTensor> tensors;
  for (const StateTensor& each : layout) {
    const auto found = own_by_name.find(each.name);
    tensors.push_back({holders()[each.parameter], each.shape, each.type,
                       found == own_by_name.end() ? at::Tensor() : found->second});
  }
  const std::vector<at::Tensor> collected = collect_on_first(*transport_, tensors);
  NamedTensors state;
  for (size_t i = 0; i < collected.size(); ++i) state.emplace_back(layout[i].name, collected[i]);
  return state;
}

double Trainer::sum_over_ranks(double number) {
  AllReduce sum(*transport_, everyone_, &number, 1, SumType::kFloat64);
  sum.finish();
  return number;
}

}  // namespace tessera
