#pragma once
// An operator with a halo that can be made wrong in one place at a time, to see whether the proof
// finds it:
//
//     y[i] = x[i] + gain * x[i + 1]      along the last axis, with a zero after the last pixel

#include <memory>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// Relative errors of what the kernels give, unless said otherwise.
struct Flaws {
  double forward = 0;
  double input_gradient = 0;
  double input_gradient_offset = 0;  // absolute
  double weight_gradient = 0;
  bool drops_halo_gradient = false;
};

class FlawedShift final : public Op {
 public:
  explicit FlawedShift(const Flaws& flaws) : flaws_(flaws) {}
  std::string kind() const override { return "flawed_shift"; }
  ValueType infer_type(std::span<const ValueType> inputs) const override { return inputs[0]; }

  Box needed(int, const Box& out, const NodeTypes&) const override {
    Box box = out;
    if (!out.empty()) box[box.num_axes() - 1].end += 1;
    return box;
  }
  InputAccess input_access(int) const override { return InputAccess::kDense; }
  bool keeps_input(int) const override { return true; }

  void forward(KernelArgs& args) const override {
    const at::Tensor y = shifted_sum(args.inputs[0].tensor, args.parameters[0]);
    args.output.view(args.out_box).copy_(y * (1 + flaws_.forward));
  }

  void input_gradient(KernelArgs& args) const override {
    const at::Tensor dy = args.grad_output.view(args.out_box) * (1 + flaws_.input_gradient);
    const int64_t columns = dy.size(-1);
    at::Tensor dx = at::zeros(args.grad_inputs[0].box.shape(), dy.options());
    dx.narrow(-1, 0, columns).add_(dy);
    dx.narrow(-1, 1, columns).add_(args.parameters[0] * dy);
    dx.add_(flaws_.input_gradient_offset);
    if (flaws_.drops_halo_gradient) dx.narrow(-1, columns, 1).zero_();
    args.grad_inputs[0].tensor.copy_(dx);
  }

  void weight_gradient(KernelArgs& args) const override {
    const at::Tensor dy = args.grad_output.view(args.out_box) * (1 + flaws_.weight_gradient);
    args.grad_parameters[0].add_((dy * args.inputs[0].tensor.narrow(-1, 1, dy.size(-1))).sum());
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    return shifted_sum(at::constant_pad_nd(args.inputs[0], {0, 1}), args.parameters[0]);
  }

 private:
  static at::Tensor shifted_sum(const at::Tensor& x, const at::Tensor& gain) {
    const int64_t columns = x.size(-1) - 1;
    return x.narrow(-1, 0, columns) + gain * x.narrow(-1, 1, columns);
  }

  Flaws flaws_;
};

/// Parameter: name.gain.
inline ValueId flawed_shift(Graph& graph, ValueId x, const std::string& name, const Flaws& flaws) {
  const ParameterId gain = graph.add_parameter(
      {name + ".gain", {1}, ParameterRole::kTrainable, {Initial::Kind::kConstant, 0.5}});
  return graph.add_node(name, std::make_shared<FlawedShift>(flaws), {x}, {gain});
}

}  // namespace tessera
