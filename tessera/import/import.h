#pragma once
// A PyTorch model as a graph: the file that torch.jit.script or torch.jit.trace saved, unchanged.
//
// The graph is that of one input shape; the code's sizes, loops and branches are worked out for it.
// Weights start as they lie in the file and keep their names of the state dict. Nothing of the
// file's code runs: an operator that Tessera lacks is refused with its place in the user's source.
//
// Example:
//   ImportedModel model = import_torchscript("net.pt", {1, 3, 512, 512});
//   ... train ...
//   save_torchscript("net.pt", "trained.pt", model.graph, model.counters, values, steps);

#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/import/closed_child.h"

namespace tessera {

struct ImportedModel {
  Graph graph;                              // the outputs are marked; there is no loss yet
  std::map<std::string, std::string> ties;  // second names of tied weights → their first
  std::map<std::string, int64_t> counters;  // num_batches_tracked: what a step adds to each
};

/// Throws InvalidInput for a file that cannot be read or does not fit the input, Unsupported for
/// code that Tessera cannot cut. The input is an image, or batch x features. Only a closed child
/// loads the file (closed_child.h).
ImportedModel import_torchscript(const std::string& path, const Shape& input,
                                 WithoutFilter without_filter = WithoutFilter::kRefuse);

/// Writes the file `original` again with the weights `values` (as graph.parameters()), after
/// `steps` training steps; torch.jit.load and load_state_dict take it. Atomically. Throws
/// InvalidInput where the file no longer has the weights. Only a closed child loads `original`.
void save_torchscript(const std::string& original, const std::string& path, const Graph& graph,
                      const std::map<std::string, int64_t>& counters,
                      const std::vector<at::Tensor>& values, int64_t steps,
                      WithoutFilter without_filter = WithoutFilter::kRefuse);

/// The PyTorch operators that a model may use and what each becomes, as Markdown tables.
std::string operator_table();

/// Whether a model's name is meant as a file: it ends in .pt, .pth or .ts, or holds a slash
/// before its options.
bool names_a_file(const std::string& model);

}  // namespace tessera
