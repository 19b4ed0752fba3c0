#pragma once
// All that a run needs to go on where it stopped, and nothing of the grid or transport it ran on:
// it can be resumed on any other.
//
// Example:
//   check_fits(graph, state, "run/checkpoints/step-000100");
//   for (auto& [name, value] : tensors_under(state, "model.")) ...

#include <cstdint>
#include <map>
#include <string>

#include "tessera/checkpoint/safetensors.h"
#include "tessera/graph/graph.h"

namespace tessera {

struct TrainingState {
  /// Parameters and buffers as "model.NAME", the optimiser's as "optimiser.NAME". Loaded ones come
  /// in the order of names, in host memory of their own.
  NamedTensors tensors;
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t position_in_epoch = 0;
  uint64_t seed = 0;
  double best_metric = 0;  // may be infinite or NaN: before the first validation
  Metadata metadata;       // model, configuration, versions: UTF-8 text
};

/// The tensors whose names begin with `prefix`, under the rest of their names.
std::map<std::string, at::Tensor> tensors_under(const TrainingState& state,
                                                const std::string& prefix);

/// The weights that the state is validated, saved and applied with, as Graph::parameters(): those
/// of a run with --ema are its averages. The state must fit the graph.
std::vector<at::Tensor> applied_weights(const Graph& graph, const TrainingState& state);

/// Throws InvalidInput with `path`, from which the state came, and the first differences unless the
/// tensors under "model." are the graph's parameters and buffers.
void check_fits(const Graph& graph, const TrainingState& state, const std::string& path);

}  // namespace tessera
