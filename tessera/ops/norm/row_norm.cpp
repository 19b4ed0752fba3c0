#include "tessera/ops/norm/row_norm.h"

#include <cmath>

#include "tessera/base/error.h"

namespace tessera {
namespace {

class RowNorm final : public Op {
 public:
  explicit RowNorm(const RowNormOptions& options) : epsilon_(options.epsilon) {}

  std::string kind() const override { return "row_norm"; }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    const ValueType& input = inputs[0];
    if (input.element != Element::kReal || input.num_axes() < 2 ||
        input.axes[1].kind != AxisKind::kChannel)
      throw_error<InvalidInput>("input {} must be real, with batch and channels first",
                                to_string(input));
    if (!(epsilon_ > 0 && std::isfinite(epsilon_)))
      throw_error<InvalidInput>("epsilon {} must be above 0 and finite", epsilon_);
    return input;
  }
  /// All channels: they are never cut, so the output holds them too.
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  bool keeps_input(int) const override { return true; }
  double flops(const Box& out, const NodeTypes&) const override {
    return 3.0 * static_cast<double>(out.volume());
  }

  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor x = args.inputs[0].view(args.out_box);
    args.output.view(args.out_box).copy_(x / length(x).clamp_min(epsilon_));
  }

  /// dx = (dy - y (y dy)) / |x|; of a vector that is too short, dy / epsilon.
  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
    const at::Tensor x = args.inputs[0].view(args.out_box);
    const at::Tensor dy = args.grad_output.view(args.out_box);
    const at::Tensor norm = length(x), divisor = norm.clamp_min(epsilon_), y = x / divisor;
    const at::Tensor along = (y * dy).sum(1, /*keepdim=*/true).masked_fill(norm < epsilon_, 0);
    args.grad_inputs[0].view(args.out_box).copy_((dy - y * along) / divisor);
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0] / at::norm(args.inputs[0], 2, {1}, /*keepdim=*/true).clamp_min(epsilon_);
  }

 private:
  static at::Tensor length(const at::Tensor& x) { return (x * x).sum(1, /*keepdim=*/true).sqrt(); }

  double epsilon_;
};

}  // namespace

ValueId row_norm(Graph& graph, ValueId x, const std::string& name, const RowNormOptions& options) {
  return graph.add_node(name, std::make_shared<RowNorm>(options), {x});
}

}  // namespace tessera
