#include "tessera/ops/pointwise/gradient_reversal.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

class GradientReversal final : public Op {
 public:
  explicit GradientReversal(const StepFunction& lambda) : lambda_(lambda) {}

  std::string kind() const override { return "gradient_reversal"; }
  std::string settings() const override { return "lambda " + to_string(lambda_); }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    if (inputs[0].element != Element::kReal)
      throw_error<InvalidInput>("the input holds labels; give real numbers");
    check_step_function(lambda_, "lambda");
    return inputs[0];
  }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool cheap_to_recompute() const override { return true; }
  bool depends_on_step() const override { return true; }
  double flops(const Box&, const NodeTypes&) const override { return 0; }

  void forward(KernelArgs& args) const override {
    args.output.view(args.out_box).copy_(args.inputs[0].view(args.out_box));
  }

  void input_gradient(KernelArgs& args) const override {
    if (!args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor gradient = args.grad_inputs[0].view(args.out_box);
    gradient.copy_(args.grad_output.view(args.out_box)).mul_(-lambda_.at(args.step));
  }

  /// x - x is 0, but for autograd only the first is a variable.
  at::Tensor reference(const ReferenceArgs& args) const override {
    const at::Tensor& x = args.inputs[0];
    return x.detach() - lambda_.at(args.step) * (x - x.detach());
  }

 private:
  StepFunction lambda_;
};

}  // namespace

ValueId gradient_reversal(Graph& graph, ValueId x, const std::string& name,
                          const StepFunction& lambda) {
  return graph.add_node(name, std::make_shared<GradientReversal>(lambda), {x});
}

}  // namespace tessera
