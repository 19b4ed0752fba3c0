#pragma once
// A model's weights as a file to exchange: safetensors under the names of PyTorch's state dict, so
// that `model.load_state_dict(safetensors.torch.load_file(path))` works there, and its files here.
//
// Example:
//   save_weights("w.safetensors", graph, store.values());
//   load_weights("w.safetensors", graph, store.values());

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Atomically, in the element type of `values`, which are as Graph::parameters().
void save_weights(const std::string& path, const Graph& graph,
                  const std::vector<at::Tensor>& values);

/// Copies into the tensors of `values`, converting to their element type and device. A missing,
/// extra or mis-shaped tensor is InvalidInput with a list, and then nothing has been copied.
/// PyTorch's counters `*.num_batches_tracked` are passed over: they matter only without a momentum.
void load_weights(const std::string& path, const Graph& graph, std::vector<at::Tensor>& values);

}  // namespace tessera
