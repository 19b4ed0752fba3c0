#include "tessera/ops/chain/chain_arithmetic.h"

#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "tessera/base/error.h"
#include "tessera/graph/script.h"

namespace tessera {
namespace {

/// Of values of one shape, each read where the result is written.
class ChainOp : public Op {
 public:
  ValueType infer_type(std::span<const ValueType> inputs) const override { return inputs[0]; }
  Box needed(int, const Box& out, const NodeTypes&) const final { return out; }
};

at::Tensor& multiply(const at::Tensor& x, double factor, at::Tensor& product) {
  return at::mul_out(product, x, at::scalar_tensor(factor, x.options()));
}

class ScaledStep final : public ChainOp {
 public:
  explicit ScaledStep(double size) : size_(size) {}
  double size() const { return size_; }
  std::string kind() const override { return "step"; }
  std::string settings() const override { return fmt::format("size {:.6g}", size_); }
  ValueType infer_type(std::span<const ValueType> inputs) const override {
    for (const ValueType& input : inputs)
      if (input.element != Element::kReal)
        throw_error<InvalidInput>("an input holds labels; give real numbers");
    if (inputs[0].shape() != inputs[1].shape())
      throw_error<InvalidInput>("the inputs are {} and {}; their shapes must be equal",
                                to_string(inputs[0]), to_string(inputs[1]));
    return inputs[0];
  }
  double flops(const Box& out, const NodeTypes&) const override {
    return 2 * static_cast<double>(out.volume());
  }
  void forward(KernelArgs& args) const override {
    at::Tensor output = args.output.view(args.out_box);
    multiply(args.inputs[1].view(args.out_box), size_, output)
        .add_(args.inputs[0].view(args.out_box));
  }
  void input_gradient(KernelArgs& args) const override {
    if (at::Tensor& state = args.grad_inputs[0].tensor; state.defined())
      state.copy_(args.grad_output.tensor);
    if (at::Tensor& change = args.grad_inputs[1].tensor; change.defined())
      multiply(args.grad_output.tensor, size_, change);
  }
  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0] + args.inputs[1] * size_;
  }
  std::optional<std::string> script(const ScriptArgs& args) const override {
    return script_call("torch.add",
                       {args.inputs[0], args.inputs[1], "alpha=" + script_real(size_)});
  }

 private:
  double size_;
};

class Scaled final : public ChainOp {
 public:
  explicit Scaled(double factor) : factor_(factor) {}
  std::string kind() const override { return "scaled"; }
  std::string settings() const override { return fmt::format("x {}", factor_); }
  void forward(KernelArgs& args) const override {
    at::Tensor output = args.output.view(args.out_box);
    multiply(args.inputs[0].view(args.out_box), factor_, output);
  }
  void input_gradient(KernelArgs& args) const override {
    if (args.grad_inputs[0].tensor.defined())
      multiply(args.grad_output.tensor, factor_, args.grad_inputs[0].tensor);
  }
  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0] * factor_;
  }

 private:
  double factor_;
};

class Correction final : public ChainOp {
 public:
  std::string kind() const override { return "correction"; }
  bool differentiable(int) const override { return false; }
  double flops(const Box& out, const NodeTypes&) const override {
    return 2 * static_cast<double>(out.volume());
  }
  void forward(KernelArgs& args) const override {
    at::Tensor output = args.output.view(args.out_box);
    at::sub_out(output, args.inputs[1].view(args.out_box), args.inputs[2].view(args.out_box));
    output.add_(args.inputs[0].view(args.out_box));
  }
  void input_gradient(KernelArgs&) const override {}
  at::Tensor reference(const ReferenceArgs& args) const override {
    c10::NoGradGuard no_gradients;
    return args.inputs[0] + (args.inputs[1] - args.inputs[2]);
  }
};

class TurningPoint final : public ChainOp {
 public:
  std::string kind() const override { return "turning_point"; }
  void forward(KernelArgs& args) const override {
    args.output.view(args.out_box).copy_(args.inputs[0].view(args.out_box));
  }
  void input_gradient(KernelArgs& args) const override {
    for (const Operand& gradient : args.grad_inputs)
      if (gradient.tensor.defined()) gradient.tensor.copy_(args.grad_output.tensor);
  }
  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0] + (args.inputs[1] - args.inputs[1].detach());
  }
};

}  // namespace

ValueId chain_step(Graph& graph, ValueId state, ValueId change, const std::string& name,
                   double size) {
  return graph.add_node(name, scaled_step(size), {state, change});
}

std::shared_ptr<const Op> scaled_step(double size) { return std::make_shared<ScaledStep>(size); }

std::optional<double> step_size(const Op& op) {
  if (op.kind() == "add") return 1;
  const auto* step = dynamic_cast<const ScaledStep*>(&op);
  return step == nullptr ? std::nullopt : std::optional(step->size());
}

std::shared_ptr<const Op> scaled(double factor) { return std::make_shared<Scaled>(factor); }

ValueId correction(Graph& graph, ValueId arrived, ValueId now, ValueId left,
                   const std::string& name) {
  return graph.add_node(name, std::make_shared<Correction>(), {arrived, now, left});
}

ValueId turning_point(Graph& graph, ValueId u, ValueId sweeps, const std::string& name) {
  return graph.add_node(name, std::make_shared<TurningPoint>(), {u, sweeps});
}

}  // namespace tessera
