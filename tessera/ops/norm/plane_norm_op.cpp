#include "tessera/ops/norm/plane_norm_op.h"

#include "tessera/base/error.h"
#include "tessera/graph/script.h"

namespace tessera {

std::shared_ptr<const Op> PlaneNormOp::with_tail(const NormTail& tail) const {
  TESSERA_CHECK(takes_tail(), "{} takes nothing into its pass", kind());
  const std::shared_ptr<PlaneNormOp> op = copy();
  op->tail_ = tail;
  return op;
}

std::string PlaneNormOp::kind() const {
  std::string kind = norm_kind();
  if (tail_.adds) kind += "_add";
  if (tail_.activation == NormActivation::kRelu) kind += "_relu";
  if (tail_.activation == NormActivation::kRelu6) kind += "_relu6";
  return kind;
}

ValueType PlaneNormOp::infer_type(std::span<const ValueType> inputs) const {
  check_norm(inputs[0]);
  if (tail_.adds && inputs[1] != inputs[0])
    throw_error<InvalidInput>("{} is added to {}; they must be alike", to_string(inputs[1]),
                              to_string(inputs[0]));
  return inputs[0];
}

double PlaneNormOp::flops(const Box& out, const NodeTypes&) const {
  return (norm_flops_per_element() + (tail_.adds ? 1 : 0)) * static_cast<double>(out.volume());
}

at::Tensor PlaneNormOp::reference(const ReferenceArgs& args) const {
  at::Tensor y = norm_reference(args);
  if (tail_.adds) y = y + args.inputs[1];
  if (tail_.activation == NormActivation::kRelu6) return at::hardtanh(y, 0, 6);
  return tail_.activation == NormActivation::kRelu ? at::relu(y) : y;
}

std::optional<std::string> PlaneNormOp::script(const ScriptArgs& args) const {
  std::optional<std::string> y = norm_script(args);
  if (y && tail_.adds) y = script_call("torch.add", {*y, args.inputs[1]});
  if (y && tail_.activation == NormActivation::kRelu) y = script_call("torch.relu", {*y});
  if (y && tail_.activation == NormActivation::kRelu6)
    y = script_call("torch.hardtanh", {*y, script_real(0), script_real(6)});
  return y;
}

at::Tensor PlaneNormOp::added(const KernelArgs& args) const {
  return tail_.adds ? args.inputs[1].view(args.out_box) : at::Tensor();
}

at::Tensor PlaneNormOp::kept_output(const KernelArgs& args) const {
  return keeps_output() ? args.output.view(args.out_box) : at::Tensor();
}

at::Tensor PlaneNormOp::grad_added(const KernelArgs& args) const {
  return tail_.adds ? args.grad_inputs[1].tensor : at::Tensor();
}

bool PlaneNormOp::wants_grad_x(const KernelArgs& args) const {
  if (args.grad_inputs[0].tensor.defined()) return true;
  at::Tensor gradient = grad_added(args);
  if (!gradient.defined()) return false;
  const at::Tensor grad_y = args.grad_output.view(args.out_box);
  if (!keeps_output())
    gradient.copy_(grad_y);
  else if (tail_.activation == NormActivation::kRelu6)
    at::hardtanh_backward_out(gradient, grad_y, kept_output(args), 0, 6);
  else
    at::threshold_backward_out(gradient, grad_y, kept_output(args), 0);
  return false;
}

const PlaneNormOp* plane_norm_op(const Op& op) { return dynamic_cast<const PlaneNormOp*>(&op); }

}  // namespace tessera
