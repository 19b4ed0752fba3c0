#pragma once
// A model's weights as a file to exchange: safetensors under the names of PyTorch's state dict, so
// that `model.load_state_dict(safetensors.torch.load_file(path))` works there, and its files here.
//
// Example:
//   save_weights("w.safetensors", graph, store.values());
//   load_weights("w.safetensors", graph, store.values());

#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Atomically, in the element type of `values`, which are as Graph::parameters(). `ties` are second
/// names of parameters, which the file gets as well.
void save_weights(const std::string& path, const Graph& graph,
                  const std::vector<at::Tensor>& values,
                  const std::map<std::string, std::string>& ties = {});

/// The gradients (as Graph::parameters(); undefined ones are left out), under the same names.
void save_gradients(const std::string& path, const Graph& graph,
                    const std::vector<at::Tensor>& gradients);

/// Copies into the defined tensors of `values`, converting to their element type and device. A
/// missing, extra or mis-shaped tensor is InvalidInput with a list, and then nothing has been
/// copied. What torchvision's files hold beyond the model is understood, and that alone:
///  - PyTorch's counters `*.num_batches_tracked` are passed over: they matter only without a
///    momentum.
///  - The auxiliary classifier of Inception v3, `AuxLogits.*`, is passed over by a model without
///    one.
///  - The first files of DenseNet write `denselayer1.norm.1.weight` for `denselayer1.norm1.weight`.
///  - Second names of tied parameters (`ties`, as for save_weights) are passed over.
///
/// A file of Python's pickle, as torch.save writes it, is refused with the line of Python that
/// converts it: reading one runs its code.
void load_weights(const std::string& path, const Graph& graph, std::vector<at::Tensor>& values,
                  const std::map<std::string, std::string>& ties = {});

/// The same, but what does not fit is passed over, and told: the head of another number of classes.
/// Throws InvalidInput where nothing fits.
std::vector<std::string> load_fitting_weights(const std::string& path, const Graph& graph,
                                              std::vector<at::Tensor>& values,
                                              const std::map<std::string, std::string>& ties = {});

}  // namespace tessera
