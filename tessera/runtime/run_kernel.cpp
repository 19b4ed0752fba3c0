#include "tessera/base/error.h"
#include "tessera/runtime/executor.h"
#include "tessera/runtime/library_errors.h"

// The Run instruction: from views to a kernel's arguments and back.

namespace tessera {
namespace {

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
    case Phase::kCombineStatistics:
    case Phase::kMergeStatistics:
    case Phase::kUpdateBuffers:
    case Phase::kCombineGradStatistics:
      break;
  }
  TESSERA_CHECK(false, "{} is not a kernel of a piece", to_string(phase));
}

/// Where the results of a kernel of a piece go.
std::vector<const void*> places_of_results(const KernelArgs& args) {
  std::vector<const void*> places;
  const auto add = [&](const at::Tensor& tensor) {
    places.push_back(tensor.defined() ? tensor.unsafeGetTensorImpl()->data() : nullptr);
  };
  add(args.output.tensor);
  for (const Operand& grad : args.grad_inputs) add(grad.tensor);
  return places;
}

}  // namespace

void Executor::execute(const Run& run) {
  const Node& node = graph_.node(run.node);
  with_our_errors(fmt::format("{} {}", node.op->kind(), node.name), [&] {
    if (run.piece < 0) return run_on_rows(run, node);
    KernelArgs args = kernel_args(run, node);
    run_kernel(run, &args);
  });
}

void Executor::run_kernel(const Run& run, KernelArgs* args) {
  const int64_t before = account_.live();
  account_.reset_peak();
  const std::vector<const void*> places = places_of_results(*args);
  call(*graph_.node(run.node).op, run.phase, args);
  TESSERA_CHECK(
      places_of_results(*args) == places,
      "{}: {} puts a tensor in the place of the one that it was given; it must write that "
      "one",
      *args->name, to_string(run.phase));
  memory_.peak_workspace_bytes = std::max(memory_.peak_workspace_bytes, account_.peak() - before);
}

KernelArgs Executor::kernel_args(const Run& run, const Node& node) const {
  KernelArgs args;
  args.name = &node.name;
  args.types = &node.types;
  args.seed = context_->seed;
  args.step = context_->step;
  args.out_box = run.box;
  if (keys_.defined()) args.key = keys_[run.node];
  if (illegal_labels_.defined() && run.phase == Phase::kPieceStatistics)
    args.illegal_label = illegal_labels_[run.node];
  args.inputs.resize(node.inputs.size());
  args.grad_inputs.resize(node.inputs.size());
  for (const Argument& argument : run.arguments) {
    const Operand operand{view(argument.view), argument.view.box};
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
      case Role::kScratch:
        args.scratch = operand.tensor;
        break;
      case Role::kPieceStatistics:
        args.piece_statistics = operand.tensor;
        break;
      case Role::kMergedStatistics:
        args.merged_statistics = operand.tensor;
        break;
      case Role::kPieceGradStatistics:
        args.piece_grad_statistics = operand.tensor;
        break;
      case Role::kMergedGradStatistics:
        args.merged_grad_statistics = operand.tensor;
        break;
      case Role::kLoss:
        args.loss = operand.tensor.squeeze();
        break;
      case Role::kWeight:
        args.parameters.push_back(operand.tensor);
        break;
      case Role::kGradWeight:  // after the weights
        args.grad_parameters.push_back(
            operand.tensor.view(args.parameters[argument.index].sizes()));
        break;
      case Role::kRunning:
        args.buffers.push_back(operand.tensor);
        break;
      case Role::kRow:
      case Role::kCombined:
        TESSERA_CHECK(false, "kernels of pieces take no rows");
    }
  }
  return args;
}

/// In the order of the arguments, which is that of their indices.
std::vector<at::Tensor> Executor::tensors_of(const Run& run, Role role) const {
  std::vector<at::Tensor> tensors;
  for (const Argument& argument : run.arguments)
    if (argument.role == role) tensors.push_back(view(argument.view));
  return tensors;
}

/// What touches statistics alone, once a rank.
void Executor::run_on_rows(const Run& run, const Node& node) {
  const std::vector<at::Tensor> rows = tensors_of(run, Role::kRow);
  switch (run.phase) {
    case Phase::kCombineStatistics:
      return node.op->combine_statistics(rows, tensors_of(run, Role::kCombined).at(0));
    case Phase::kCombineGradStatistics:
      return sum_statistics(rows, tensors_of(run, Role::kCombined).at(0));
    case Phase::kMergeStatistics: {
      MergeArgs args{&node.types, rows.at(0), tensors_of(run, Role::kMergedStatistics).at(0)};
      return node.op->merge_statistics(args);
    }
    case Phase::kUpdateBuffers: {
      UpdateArgs args{&node.types, rows, tensors_of(run, Role::kRunning)};
      return node.op->update_buffers(args);
    }
    default:
      TESSERA_CHECK(false, "{} is a kernel of a piece", to_string(run.phase));
  }
}

}  // namespace tessera
