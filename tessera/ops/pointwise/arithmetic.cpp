#include "tessera/ops/pointwise/arithmetic.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"
#include "tessera/kernels/arithmetic.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/broadcast.h"

namespace tessera {
namespace {

class ArithmeticOp final : public Op {
 public:
  explicit ArithmeticOp(Arithmetic how) : how_(how) {}

  std::string kind() const override {
    return how_ == Arithmetic::kAdd ? "broadcast_add" : to_string(how_);
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    for (const ValueType& input : inputs)
      if (input.element != Element::kReal)
        throw_error<InvalidInput>("an input holds labels; give real numbers");
    if (!broadcast_shape(inputs[0].shape(), inputs[1].shape()))
      throw_error<InvalidInput>(
          "the inputs are {} and {}; aligned at their last axes, sizes must be equal or 1",
          to_string(inputs[0]), to_string(inputs[1]));
    const bool a_is_longer = inputs[0].num_axes() >= inputs[1].num_axes();
    const ValueType& shorter = inputs[a_is_longer ? 1 : 0];
    ValueType output = inputs[a_is_longer ? 0 : 1];
    const int in_front = output.num_axes() - shorter.num_axes();
    for (int i = 0; i < shorter.num_axes(); ++i)
      output.axes[in_front + i] = stretched(output.axes[in_front + i], shorter.axes[i]);
    return output;
  }

  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    return broadcast_needed(types.inputs[input].shape(), out);
  }
  bool keeps_input(int) const override { return gradient_reads_operands(how_); }
  bool cheap_to_recompute() const override { return true; }
  /// For one operand after the other.
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override {
    if (phase != Phase::kInputGradient || out.empty()) return 0;
    bool stretched = false;
    for (int input : {0, 1}) stretched |= needed(input, out, types).shape() != out.shape();
    return gradient_scratch_bytes(how_, out.volume(), stretched, numbers.type);
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    compute(how_, operand(args, 0), operand(args, 1), args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const bool kept = gradient_reads_operands(how_);
    const at::Tensor a = kept ? operand(args, 0) : at::Tensor();
    const at::Tensor b = kept ? operand(args, 1) : at::Tensor();
    for (int input = 0; input < 2; ++input)
      if (args.grad_inputs[input].tensor.defined())
        store_gradient(how_, input, args.grad_output.tensor, a, b, args.grad_inputs[input].tensor,
                       Scratch(args.scratch));
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return reference_arithmetic(how_, args.inputs[0], args.inputs[1]);
  }

  std::optional<std::string> script(const ScriptArgs& args) const override {
    switch (how_) {
      case Arithmetic::kAdd:
        return script_call("torch.add", args.inputs);
      case Arithmetic::kSubtract:
        return script_call("torch.sub", args.inputs);
      case Arithmetic::kMultiply:
        return script_call("torch.mul", args.inputs);
      case Arithmetic::kDivide:
        return script_call("torch.div", args.inputs);
      case Arithmetic::kMaximum:
        return script_call("torch.maximum", args.inputs);
      case Arithmetic::kMinimum:
        return script_call("torch.minimum", args.inputs);
      case Arithmetic::kFirstMaximum:
        break;
    }
    return std::nullopt;
  }

 private:
  /// Axes that mean different things share no stride.
  static Axis stretched(Axis axis, const Axis& other) {
    if (other.size > axis.size) {
      axis.size = other.size;
      if (other.spatial_index == axis.spatial_index) axis.stride = other.stride;
    }
    return axis;
  }

  at::Tensor operand(const KernelArgs& args, int input) const {
    return args.inputs[input].view(needed(input, args.out_box, *args.types));
  }

  Arithmetic how_;
};

}  // namespace

ValueId arithmetic(Graph& graph, ValueId a, ValueId b, const std::string& name, Arithmetic how) {
  if (how == Arithmetic::kAdd && graph.type(a).shape() == graph.type(b).shape())
    return add(graph, a, b, name);
  return graph.add_node(name, std::make_shared<ArithmeticOp>(how), {a, b});
}

at::Tensor reference_arithmetic(Arithmetic how, const at::Tensor& a, const at::Tensor& b) {
  switch (how) {
    case Arithmetic::kAdd:
      return a + b;
    case Arithmetic::kSubtract:
      return a - b;
    case Arithmetic::kMultiply:
      return a * b;
    case Arithmetic::kDivide:
      return a / b;
    case Arithmetic::kMaximum:
      return at::maximum(a, b);
    case Arithmetic::kMinimum:
      return at::minimum(a, b);
    case Arithmetic::kFirstMaximum:
      return std::get<0>(at::stack(at::broadcast_tensors({a, b})).max(0));
  }
  throw_error<InternalError>("arithmetic {} is unknown", static_cast<int>(how));
}

}  // namespace tessera
