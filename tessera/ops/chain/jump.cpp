#include "tessera/ops/chain/jump.h"

#include <c10/core/GradMode.h>

#include <cmath>

#include "tessera/graph/step_numbers.h"
#include "tessera/kernels/loss.h"

namespace tessera {
namespace {

// Of the step.
constexpr Range kNumbers{1, 3}, kGradientJump{3, 4}, kGradientFound{4, 5};

/// |values|², a float64 scalar.
at::Tensor squared_size(const at::Tensor& values) {
  return loss_sum({}, {values, at::zeros({1}, values.options()).expand_as(values)});
}

/// sqrt(jump / size) of two of the numbers after the loss.
std::optional<double> ratio_at(const std::vector<double>& measured, size_t first) {
  if (measured.size() < first + 2) return std::nullopt;
  return measured[first] == 0 ? 0 : std::sqrt(measured[first] / measured[first + 1]);
}

/// Of values of one shape, each read where the result is written. Its gradient is measured.
class GradientSize : public GradientMeasurement {
 public:
  ValueType infer_type(std::span<const ValueType> inputs) const final { return inputs[0]; }
  Box needed(int, const Box& out, const NodeTypes&) const final { return out; }
  void input_gradient(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    args.loss.add_(squared_size(args.grad_output.tensor));
  }
  at::Tensor measured(const at::Tensor& gradient) const final {
    return gradient.to(at::kDouble).square().sum();
  }
};

class MeasuredStart final : public GradientSize {
 public:
  std::string kind() const override { return "measured_start"; }
  Range step_numbers() const override { return kGradientJump; }
  bool differentiable(int) const override { return false; }
  void forward(KernelArgs& args) const override {
    args.output.view(args.out_box).copy_(args.inputs[0].view(args.out_box));
  }
  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0].detach().clone().requires_grad_(true);
  }
};

class GradientTakenAway final : public GradientSize {
 public:
  std::string kind() const override { return "gradient_taken_away"; }
  Range step_numbers() const override { return kGradientFound; }
  bool gives_zeros() const override { return true; }
  void forward(KernelArgs& args) const override { args.output.tensor.zero_(); }
  void input_gradient(KernelArgs& args) const override {
    GradientSize::input_gradient(args);
    if (at::Tensor& given = args.grad_inputs[0].tensor; given.defined())
      at::neg_out(given, args.grad_output.tensor);
  }
  at::Tensor reference(const ReferenceArgs& args) const override {
    return args.inputs[0].detach() - args.inputs[0];
  }
};

class Jump final : public Measurement {
 public:
  std::string kind() const override { return "jump"; }
  Box needed(int, const Box& out, const NodeTypes&) const override { return out; }
  Range step_numbers() const override { return kNumbers; }
  double flops(const Box& out, const NodeTypes&) const override {
    return 5 * static_cast<double>(out.volume());
  }
  void forward(KernelArgs& args) const override {
    if (args.out_box.empty()) return;
    const at::Tensor arrived = args.inputs[0].view(args.out_box);
    const at::Tensor start = args.inputs[1].view(args.out_box);
    args.loss[0].add_(loss_sum({}, {arrived, start}));
    args.loss[1].add_(squared_size(start));
  }
  at::Tensor reference(const ReferenceArgs& args) const override {
    c10::NoGradGuard no_gradients;
    const at::Tensor arrived = args.inputs[0].to(at::kDouble),
                     start = args.inputs[1].to(at::kDouble);
    return at::stack({(arrived - start).square().sum(), start.square().sum()});
  }
};

}  // namespace

void measure_jump(Graph& graph, ValueId arrived, ValueId start, const std::string& name) {
  graph.add_node(name, std::make_shared<Jump>(), {arrived, start});
}

ValueId measured_start(Graph& graph, ValueId start, const std::string& name) {
  return graph.add_node(name, std::make_shared<MeasuredStart>(), {start});
}

std::shared_ptr<const Op> gradient_taken_away() { return std::make_shared<GradientTakenAway>(); }

std::optional<double> relative_jump(const std::vector<double>& measured) {
  return ratio_at(measured, kNumbers.begin - 1);
}

std::optional<double> relative_jump_of_gradients(const std::vector<double>& measured) {
  return ratio_at(measured, kGradientJump.begin - 1);
}

}  // namespace tessera
