#include "tessera/ops/chain/linearised.h"

#include "tessera/kernels/scratch.h"

namespace tessera {
namespace {

int num_inputs(const Node& node) { return static_cast<int>(node.types.inputs.size()); }

bool saves(const Node& node) {
  return node.op->saved(Box::whole(node.types.output.shape()), node.types).numel > 0;
}

bool has_point(const Node& node) {
  bool reads = saves(node) || node.op->keeps_output() ||
               node.op->forward_statistics(node.types).per_piece > 0;
  for (int input = 0; input < num_inputs(node); ++input) reads |= node.op->keeps_input(input);
  return reads;
}

class Linearised final : public Op {
 public:
  explicit Linearised(const Node& node)
      : op_(node.op),
        name_(node.name),
        types_(node.types),
        num_changes_(num_inputs(node)),
        saves_(saves(node)),
        has_point_(has_point(node)) {}

  const Op& op() const { return *op_; }
  std::string kind() const override { return "linearised_" + op_->kind(); }
  std::string settings() const override { return op_->settings(); }
  ValueType infer_type(std::span<const ValueType>) const override { return types_.output; }
  Box needed(int input, const Box& out, const NodeTypes&) const override {
    return is_output(input) ? out : op_->needed(input % num_changes_, out, types_);
  }
  InputAccess input_access(int input) const override {
    return is_output(input) ? InputAccess::kStrided : op_->input_access(input % num_changes_);
  }
  bool keeps_input(int input) const override {
    return is_output(input) ||
           (is_point(input) && (saves_ || op_->keeps_input(input - num_changes_)));
  }
  bool differentiable(int input) const override { return input < num_changes_; }
  bool trains_parameters() const override { return false; }
  bool gives_zeros() const override { return true; }
  Statistics forward_statistics(const NodeTypes&) const override {
    return op_->forward_statistics(types_);
  }
  int64_t backward_statistics(const NodeTypes&) const override {
    return op_->backward_statistics(types_);
  }
  bool statistics_read(int input) const override {
    return is_point(input) && op_->statistics_read(input - num_changes_);
  }
  bool depends_on_step() const override { return op_->depends_on_step(); }
  bool depends_on_place() const override { return op_->depends_on_place(); }
  int64_t batch_parts() const override { return op_->batch_parts(); }
  double flops(const Box& out, const NodeTypes&) const override { return op_->flops(out, types_); }
  double elements_moved(const Box& out, const NodeTypes&) const override {
    return op_->elements_moved(out, types_);
  }
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes&,
                             const Numbers& numbers) const override {
    const ScratchBytes own = op_->scratch_bytes(phase, out, types_, numbers);
    if (phase != Phase::kInputGradient || !saves_) return own;
    const ScratchBytes forward = op_->scratch_bytes(Phase::kForward, out, types_, numbers);
    const int64_t found = bytes_found(out, numbers.type);
    return {found + std::max(own.least, forward.least), found + std::max(own.most, forward.most)};
  }

  void forward(KernelArgs& args) const override { args.output.tensor.zero_(); }
  void input_gradient(KernelArgs& args) const override {
    KernelArgs own = at_point(args);
    if (saves_ && !args.out_box.empty()) find_saved(&own);
    op_->input_gradient(own);
  }
  void piece_statistics(KernelArgs& args) const override {
    KernelArgs own = at_point(args);
    op_->piece_statistics(own);
  }
  void combine_statistics(const std::vector<at::Tensor>& rows,
                          const at::Tensor& combined) const override {
    op_->combine_statistics(rows, combined);
  }
  void merge_statistics(MergeArgs& args) const override {
    MergeArgs own = args;
    own.types = &types_;
    op_->merge_statistics(own);
  }
  void piece_grad_statistics(KernelArgs& args) const override {
    KernelArgs own = at_point(args);
    op_->piece_grad_statistics(own);
  }

  /// Zero, but with the gradient of the operator at the point.
  at::Tensor reference(const ReferenceArgs& args) const override {
    ReferenceArgs own = args;
    own.name = &name_;
    own.inputs.assign(args.inputs.begin(), args.inputs.begin() + num_changes_);
    for (int i = 0; has_point_ && i < num_changes_; ++i)
      own.inputs[i] = args.inputs[num_changes_ + i].detach() + without_value(args.inputs[i]);
    for (at::Tensor& parameter : own.parameters) parameter = parameter.detach();
    return without_value(op_->reference(own));
  }

 private:
  bool is_point(int input) const { return input >= num_changes_ && input < 2 * num_changes_; }
  bool is_output(int input) const { return input >= 2 * num_changes_; }

  /// Zero, with the gradient of `change`.
  static at::Tensor without_value(const at::Tensor& change) { return change - change.detach(); }

  /// As the operator itself would get them.
  KernelArgs at_point(const KernelArgs& args) const {
    KernelArgs own = args;
    own.name = &name_;
    own.types = &types_;
    own.inputs.assign(num_changes_, Operand());
    for (int i = 0; has_point_ && i < num_changes_; ++i)
      own.inputs[i] = args.inputs[num_changes_ + i];
    if (op_->keeps_output()) own.output = args.inputs[2 * num_changes_];
    own.grad_inputs.resize(num_changes_);
    return own;
  }

  /// Of the output and of what forward saves.
  int64_t bytes_found(const Box& out, at::ScalarType real) const {
    const Saved saved = op_->saved(out, types_);
    return Scratch::bytes_of(out.volume(), real) + Scratch::bytes_of(saved.numel, saved.type);
  }

  /// What forward saves is no value, which the point could have: it runs again at the point.
  void find_saved(KernelArgs* args) const {
    Scratch scratch(args->scratch);
    KernelArgs forward = *args;
    const at::ScalarType real = args->grad_output.tensor.scalar_type();
    const Saved saved = op_->saved(args->out_box, types_);
    forward.output = {scratch.take(args->out_box.shape(), real), args->out_box};
    forward.saved = scratch.take({saved.numel}, saved.type);
    const int64_t taken = bytes_found(args->out_box, real);
    args->scratch = forward.scratch = args->scratch.narrow(0, taken, args->scratch.numel() - taken);
    op_->forward(forward);
    args->saved = forward.saved;
  }

  std::shared_ptr<const Op> op_;
  std::string name_;
  NodeTypes types_;
  int num_changes_;
  bool saves_;
  bool has_point_;
};

}  // namespace

std::shared_ptr<const Op> linearised(const Node& node) {
  return std::make_shared<Linearised>(node);
}

const Op* linearised_operator(const Op& op) {
  const auto* derivative = dynamic_cast<const Linearised*>(&op);
  return derivative == nullptr ? nullptr : &derivative->op();
}

std::vector<ValueId> inputs_of_point(const Node& node) {
  if (!has_point(node)) return {};
  std::vector<ValueId> values = node.inputs;
  if (node.op->keeps_output()) values.push_back(node.output);
  return values;
}

bool can_be_linearised(const Node& node) {
  if (node.op->is_loss()) return false;
  for (int input = 0; input < num_inputs(node); ++input)
    if (!node.op->differentiable(input)) return false;
  return true;
}

}  // namespace tessera
