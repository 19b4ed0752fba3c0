#include "tessera/base/error.h"
#include "tessera/kernels/arithmetic.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/broadcast.h"

namespace tessera {
namespace {

using Side = ParameterOperand::Side;

/// A weight that is not trained is a buffer of the node, so that nothing is kept for a gradient
/// that it does not get.
class ParameterArithmetic final : public Op {
 public:
  ParameterArithmetic(Arithmetic how, const ParameterOperand& operand, bool trainable)
      : how_(how), shape_(operand.shape), side_(operand.side), trainable_(trainable) {}

  std::string kind() const override { return to_string(how_) + "_parameter"; }
  std::string settings() const override {
    return fmt::format("weight {}{}", shape_.empty() ? "scalar" : to_string(shape_),
                       side_ == Side::kLeft ? " on the left" : "");
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (inputs[0].element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    if (broadcast_shape(shape_, inputs[0].shape()) != inputs[0].shape())
      throw_error<InvalidInput>(
          "a weight of shape {} does not broadcast to the input {}; aligned at their last axes, "
          "its sizes must be equal to the input's or 1",
          to_string(shape_), to_string(inputs[0]));
    return inputs[0];
  }

  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  /// A product's gradient needs the value for the weight's part alone.
  bool keeps_input(int) const override {
    if (!gradient_reads_operands(how_)) return false;
    const bool linear_in_input =
        how_ == Arithmetic::kMultiply || (how_ == Arithmetic::kDivide && side_ == Side::kRight);
    return trainable_ || !linear_in_input;
  }
  bool cheap_to_recompute() const override { return true; }
  /// The piece's part of the weight's gradient, and what store_gradient takes.
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes&,
                             const Numbers& numbers) const override {
    if (out.empty()) return 0;
    if (phase == Phase::kInputGradient)
      return gradient_scratch_bytes(how_, out.volume(), /*stretched=*/false, numbers.type);
    if (phase != Phase::kWeightGradient) return 0;
    const Box weight = broadcast_needed(shape_, out);
    return Scratch::bytes_of(weight.volume(), numbers.type) +
           gradient_scratch_bytes(how_, out.volume(), weight.shape() != out.shape(), numbers.type);
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const auto [a, b] = operands(args);
    compute(how_, a, b, args.output.view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    const at::Tensor& gradient = args.grad_inputs[0].tensor;
    if (args.out_box.empty() || !gradient.defined()) return;
    const auto [a, b] = operands(args);
    store_gradient(how_, 1 - weight_index(), args.grad_output.tensor, a, b, gradient,
                   Scratch(args.scratch));
  }

  void weight_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const auto [a, b] = operands(args);
    const at::Tensor gradient = slice(args.grad_parameters[0], args.out_box);
    Scratch scratch(args.scratch);
    const at::Tensor part = scratch.take(gradient.sizes(), gradient.scalar_type());
    store_gradient(how_, weight_index(), args.grad_output.tensor, a, b, part, scratch);
    gradient.add_(part);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor weight = (trainable_ ? args.parameters[0] : args.buffers[0]).reshape(shape_);
    return side_ == Side::kLeft ? reference_arithmetic(how_, weight, args.inputs[0])
                                : reference_arithmetic(how_, args.inputs[0], weight);
  }

 private:
  int weight_index() const { return side_ == Side::kLeft ? 0 : 1; }

  at::Tensor slice(const at::Tensor& weight, const Box& out) const {
    return Operand{weight.view(shape_), Box::whole(shape_)}.view(broadcast_needed(shape_, out));
  }

  /// The left and the right one; the value is undefined where backward does not keep it.
  std::pair<at::Tensor, at::Tensor> operands(const KernelArgs& args) const {
    const at::Tensor weight =
        slice(trainable_ ? args.parameters[0] : args.buffers[0], args.out_box);
    const Operand& input = args.inputs[0];
    const at::Tensor value = input.tensor.defined() ? input.view(args.out_box) : at::Tensor();
    return side_ == Side::kLeft ? std::pair(weight, value) : std::pair(value, weight);
  }

  Arithmetic how_;
  Shape shape_;
  Side side_;
  bool trainable_;
};

}  // namespace

ValueId arithmetic_with_parameter(Graph& graph, ValueId x, const std::string& name, Arithmetic how,
                                  const ParameterOperand& operand) {
  const Shape& stored = operand.stored.empty() ? operand.shape : operand.stored;
  if (Box::whole(stored).volume() != Box::whole(operand.shape).volume())
    throw_error<InvalidInput>("[{} {}] a weight of shape {} cannot be seen as {}", to_string(how),
                              name, to_string(stored), to_string(operand.shape));
  const ParameterId weight =
      graph.add_parameter({name + ".weight", stored, operand.role, operand.initial});
  // A frozen weight may stand where a trainable one was asked for.
  const bool trainable = graph.is_trained(weight);
  using Ids = std::vector<ParameterId>;
  return graph.add_node(name, std::make_shared<ParameterArithmetic>(how, operand, trainable), {x},
                        trainable ? Ids{weight} : Ids{}, trainable ? Ids{} : Ids{weight});
}

}  // namespace tessera
