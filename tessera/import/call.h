#pragma once
// One call of a PyTorch operator in the user's code: its arguments by the names of the operator's
// schema, and refusals that say where the call stands. What each operator becomes is in
// operators_*.cpp.
//
// Example:
//   Symbols import_softmax(Call& call) {
//     const auto x = call.tensor("self");
//     if (call.axis("dim", *x) != 1) call.refuse("works over the channels only");
//     return call.result(softmax(call.graph(), call.image("self"), call.name("softmax"), {}));
//   }

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/import/interpreter.h"
#include "tessera/import/recorded_builders.h"

namespace tessera {

using Symbols = std::vector<Symbol>;
using TensorPointer = std::shared_ptr<TensorSymbol>;

class Call {
 public:
  Call(const torch::jit::Node& node, std::vector<Symbol> arguments, Interpreter& interpreter);

  const std::string& op() const { return op_; }  // "aten::conv2d", in-place forms with their "_"
  Recording& graph() const { return interpreter_.graph(); }
  Interpreter& interpreter() { return interpreter_; }
  const ValueType& type(ValueId value) const { return graph().type(value); }

  /// Whether the schema has the argument and the call gives it, not None.
  bool has(const std::string& name) const;
  const Symbol& operator[](const std::string& name) const;

  /// A tensor of the network, however the code sees it; one that was expanded is copied to what the
  /// code sees. Refuses anything else.
  TensorPointer tensor(const std::string& name) const;
  TensorPointer tensor_or_expanded(const std::string& name) const;
  /// A tensor of the network as a value with the axes that the code sees: batch, channels, space.
  ValueId image(const std::string& name);
  ValueId image(TensorSymbol& tensor);
  bool is_tensor(const std::string& name) const;
  /// The argument, where the schema has it and it is of this kind; else null.
  template <class Kind>
  const Kind* find(const std::string& name) const {
    const int index = index_of(name);
    return index < 0 ? nullptr : std::get_if<Kind>(&arguments_[index]);
  }
  const std::vector<Symbol>& arguments() const { return arguments_; }
  const torch::jit::Node& node() const { return node_; }
  /// The same call with another argument.
  Call with(const std::string& name, Symbol argument) const;
  /// The axis that the code means, in the code's order; negative counts from the end.
  int axis(const std::string& name, const TensorSymbol& tensor) const;
  int wrap_axis(int64_t axis, int num_axes) const;

  int64_t integer(const std::string& name) const;
  double real(const std::string& name) const;
  bool flag(const std::string& name) const;
  std::string text(const std::string& name) const;
  std::vector<int64_t> integers(const std::string& name) const;
  /// Kernels, strides and the like: not empty, and none beyond 65536 in size.
  std::vector<int64_t> window_numbers(const std::string& name) const;
  std::vector<double> reals(const std::string& name) const;
  std::vector<Symbol> items(const std::string& name) const;
  /// A number, or a constant tensor with one element.
  std::optional<double> scalar(const std::string& name) const;
  /// A weight or a constant tensor of the module; none where it is None. Refuses anything else.
  std::optional<WeightSymbol> weight(const std::string& name);
  std::optional<WeightSymbol> as_weight(const Symbol& symbol);

  /// A name for the node: "encoder.0.relu".
  std::string name(const std::string& kind) const;

  struct Binding {
    std::string suffix;  // the builder asks for <name>.<suffix>
    std::optional<WeightSymbol> weight;
    ParameterRole role = ParameterRole::kTrainable;
  };
  /// Puts the weights into the graph and gives a node name under which a builder finds them.
  std::string bind_weights(const std::string& kind, std::vector<Binding> bindings);

  /// A new tensor; for an in-place operator, the changed first argument.
  Symbols result(ValueId value);
  /// A new tensor that the code sees in that way.
  Symbols result(ValueId value, const CodeView& view);
  bool in_place() const { return op_.ends_with("_") && !op_.ends_with("__"); }

  [[noreturn]] void refuse(const std::string& why) const { interpreter_.refuse(node_, why); }

 private:
  int index_of(const std::string& name) const;
  const c10::IValue& value(const std::string& name, const char* expected) const;

  const torch::jit::Node& node_;
  std::vector<Symbol> arguments_;
  Interpreter& interpreter_;
  std::string op_;
};

}  // namespace tessera
