#pragma once
// A graph as a file that torch.jit.load opens: its weights in modules by the names of the state
// dict, and a forward() that computes what the graph does, for batches and images of any size that
// the network takes. Norms and dropout follow the training mode of their modules; the file is in
// training mode. Losses and targets are not part of it.
//
// Example:
//   export_torchscript("unet.pt", graph, store.values());

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Atomically, in the element type of `values`, which are as Graph::parameters(). Names become
/// attributes in Python: a part between dots is not one of its words ("class"), which PyTorch would
/// not read back. Throws as check_exportable() does.
void export_torchscript(const std::string& path, const Graph& graph,
                        const std::vector<at::Tensor>& values);

/// Throws Unsupported, naming the node, where a graph has something that has no form there.
void check_exportable(const Graph& graph);

}  // namespace tessera
