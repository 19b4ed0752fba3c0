#pragma once
// The code of a network's forward() in TorchScript: one line for each node, in their order. Weights
// and flags are read from the modules that the dots of their names stand for:
//
//   def forward(self, image):
//     conv1_out = torch.conv2d(image, getattr(getattr(self, "conv1"), "weight"), None, ...)
//     up1_out = torch.conv_transpose2d(...)
//     up1_out = torch.constant_pad_nd(up1_out, [0, conv1_out.size(3) - up1_out.size(3), ...], 0.0)

#include <set>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct ScriptSource {
  std::string forward;
  std::set<std::string> modules;  // names of nodes whose training mode it asks for
};

/// Of a graph without losses. Throws Unsupported, naming the node, for an operator that has no form
/// in TorchScript, and for a network of several inputs.
ScriptSource script_source(const Graph& graph);

}  // namespace tessera
