#pragma once
// An operator as an expression of TorchScript, PyTorch's own language for networks: export/ writes
// a network's forward() from these. Builtins are called by position, with sizes that hold for any
// image: numbers of the operator's options, or those of other tensors.
//
// Example, in an operator:
//   return script_call("torch.flatten", {args.inputs[0], "1"});

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/op.h"

namespace tessera {

/// What the expression of one node may name; all texts are expressions themselves.
struct ScriptArgs {
  const NodeTypes* types = nullptr;
  std::vector<std::string> inputs;
  std::vector<std::string> parameters;
  std::vector<std::string> buffers;
  std::vector<std::string> size;  // of the output's spatial axes, by its SizeRule; empty: none
  std::function<std::string()> training;  // whether the node is in training mode
};

/// "torch.relu(x)".
std::string script_call(const std::string& function, const std::vector<std::string>& arguments);

/// "[1, 2]".
std::string script_list(const std::vector<std::string>& items);
std::string script_list(const std::vector<int64_t>& numbers);

/// A number that TorchScript reads as the same float: "2.0".
std::string script_real(double number);

/// "True".
std::string script_bool(bool value);

/// The text, or "None" where there are not as many: a norm without weights.
std::string script_or_none(const std::vector<std::string>& texts, size_t index);

}  // namespace tessera
