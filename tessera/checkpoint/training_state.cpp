#include "tessera/checkpoint/training_state.h"

#include <fmt/format.h>

#include "tessera/checkpoint/model_fit.h"

namespace tessera {

std::map<std::string, at::Tensor> tensors_under(const TrainingState& state,
                                                const std::string& prefix) {
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : state.tensors)
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = tensor;
  return found;
}

void check_fits(const Graph& graph, const TrainingState& state, const std::string& path) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : tensors_under(state, "model."))
    shapes[name] = Shape(tensor.sizes().begin(), tensor.sizes().end());
  check_model_fit(fmt::format("[checkpoint] {}", path), graph, shapes);
}

std::vector<at::Tensor> applied_weights(const Graph& graph, const TrainingState& state) {
  std::map<std::string, at::Tensor> model = tensors_under(state, "model.");
  for (const auto& [name, average] : tensors_under(state, "optimiser.ema.")) model[name] = average;
  std::vector<at::Tensor> values;
  for (const Parameter& parameter : graph.parameters()) values.push_back(model.at(parameter.name));
  return values;
}

}  // namespace tessera
