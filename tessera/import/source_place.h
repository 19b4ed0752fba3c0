#pragma once
// Where an operator stands in the user's Python source, and in the tree of modules: what an error
// must name. Scripted and traced files carry both.

#include <torch/csrc/jit/ir/ir.h>

#include <string>

namespace tessera {

/// "net.py:12 (in decoder.0)"; of an operator inside PyTorch's own layers, the user's call.
std::string source_place(const torch::jit::Node& node);

/// "decoder.0"; empty for the model itself.
std::string module_path(const torch::jit::Node& node);

}  // namespace tessera
