#include "tessera/base/error.h"
#include "tessera/runtime/executor.h"

// The Run instruction: from views to a kernel's arguments and back.

namespace tessera {
namespace {

std::vector<at::Tensor> pick(const std::vector<at::Tensor>& tensors,
                             const std::vector<ParameterId>& ids) {
  std::vector<at::Tensor> picked;
  for (ParameterId id : ids) picked.push_back(tensors[id]);
  return picked;
}

void call(const Op& op, Phase phase, KernelArgs* args) {
  switch (phase) {
    case Phase::kForward:
    case Phase::kRecompute:
      return op.forward(*args);
    case Phase::kPieceStatistics:
      return op.piece_statistics(*args);
    case Phase::kPieceGradStatistics:
      return op.piece_grad_statistics(*args);
    case Phase::kInputGradient:
      return op.input_gradient(*args);
    case Phase::kWeightGradient:
      return op.weight_gradient(*args);
    case Phase::kMergeStatistics:
    case Phase::kUpdateBuffers:
    case Phase::kMergeGradStatistics:
      break;
  }
  TESSERA_CHECK(false, "a merge is not a kernel");
}

}  // namespace

void Executor::execute(const Run& run) {
  const Node& node = graph_.node(run.node);
  try {
    if (run.phase == Phase::kMergeStatistics || run.phase == Phase::kMergeGradStatistics ||
        run.phase == Phase::kUpdateBuffers)
      return run_merge(run, node);
    KernelArgs args = kernel_args(run, node);
    run_kernel(run, &args);
  } catch (const c10::Error& error) {
    throw_error<InternalError>("[{} {}] {}", node.op->kind(), node.name,
                               error.what_without_backtrace());
  }
}

void Executor::run_kernel(const Run& run, KernelArgs* args) {
  const int64_t before = account_.live();
  const int64_t values_before = value_bytes_;
  account_.reset_peak();
  call(*graph_.node(run.node).op, run.phase, args);
  adopt_results(run, *args);
  const int64_t adopted = value_bytes_ - values_before;
  memory_.peak_workspace_bytes =
      std::max(memory_.peak_workspace_bytes, account_.peak() - before - adopted);
}

KernelArgs Executor::kernel_args(const Run& run, const Node& node) const {
  KernelArgs args;
  args.name = &node.name;
  args.types = &node.types;
  args.seed = context_->seed;
  args.step = context_->step;
  args.out_box = run.boxes[0];
  args.inputs.resize(node.inputs.size());
  args.grad_inputs.resize(node.inputs.size());
  args.parameters = pick(parameters_->values(), node.parameters);
  if (run.phase == Phase::kWeightGradient) {
    args.grad_parameters = pick(parameters_->gradients(), node.parameters);
    for (size_t i = 0; i < args.grad_parameters.size(); ++i)  // a frozen one beside a trainable one
      if (!args.grad_parameters[i].defined())
        args.grad_parameters[i] = at::zeros_like(args.parameters[i]);
  }
  args.buffers = pick(parameters_->values(), node.buffers);
  for (const Argument& argument : run.arguments) {
    const bool returned = argument.view.buffer >= 0 &&
                          program_.buffers[argument.view.buffer].adopted &&
                          !tensors_[argument.view.buffer].defined();
    const Operand operand{returned ? at::Tensor() : view(argument.view), argument.view.box};
    switch (argument.role) {
      case Role::kInput:
        args.inputs[argument.index] = operand;
        break;
      case Role::kOutput:
        args.output = operand;
        break;
      case Role::kGradOutput:
        args.grad_output = operand;
        break;
      case Role::kGradInput:
        args.grad_inputs[argument.index] = operand;
        break;
      case Role::kSaved:
        args.saved = operand.tensor;
        break;
      case Role::kPieceStatistics:
        args.piece_statistics = operand.tensor.select(0, 0);
        break;
      case Role::kMergedStatistics:
        args.merged_statistics = operand.tensor;
        break;
      case Role::kPieceGradStatistics:
        args.piece_grad_statistics = operand.tensor.select(0, 0);
        break;
      case Role::kMergedGradStatistics:
        args.merged_grad_statistics = operand.tensor;
        break;
      case Role::kLoss:
        args.loss = operand.tensor.select(0, 0);
        break;
      case Role::kGathered:
        TESSERA_CHECK(false, "only merges read gathered statistics");
    }
  }
  return args;
}

void Executor::adopt_results(const Run& run, const KernelArgs& args) {
  for (const Argument& argument : run.arguments) {
    if (argument.view.buffer < 0 || tensors_[argument.view.buffer].defined()) continue;
    if (argument.role == Role::kOutput) adopt(argument.view, args.output.tensor);
    if (argument.role == Role::kGradInput)
      adopt(argument.view, args.grad_inputs[argument.index].tensor);
  }
}

void Executor::adopt(const View& view, const at::Tensor& tensor) {
  TESSERA_CHECK(tensor.defined() && tensor.sizes().vec() == view.box.shape() &&
                    tensor.is_contiguous() && tensor.scalar_type() == options_.real,
                "a kernel returned no dense tensor for {} {}", program_.buffers[view.buffer].name,
                to_string(view.box));
  hold(view.buffer, tensor);
}

void Executor::run_merge(const Run& run, const Node& node) {
  MergeArgs args;
  args.types = &node.types;
  args.out_boxes = run.boxes;
  args.parameters = pick(parameters_->values(), node.parameters);
  args.buffers = pick(parameters_->values(), node.buffers);
  const bool forward = run.phase == Phase::kMergeStatistics;
  for (const Argument& argument : run.arguments) {
    if (argument.role == Role::kGathered) args.gathered = view(argument.view);
    if (argument.role == Role::kMergedStatistics)
      (forward ? args.merged : args.forward_merged) = view(argument.view);
    if (argument.role == Role::kMergedGradStatistics) args.merged = view(argument.view);
  }
  if (run.phase == Phase::kUpdateBuffers)
    node.op->update_buffers(args);
  else if (forward)
    node.op->merge_statistics(args);
  else
    node.op->merge_grad_statistics(args);
}

}  // namespace tessera
