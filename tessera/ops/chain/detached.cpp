#include "tessera/ops/chain/detached.h"

#include <c10/core/GradMode.h>

namespace tessera {
namespace {

class Detached final : public Op {
 public:
  Detached(std::shared_ptr<const Op> op, std::string name)
      : op_(std::move(op)), name_(std::move(name)) {}

  std::string kind() const override { return "detached_" + op_->kind(); }
  std::string settings() const override { return op_->settings(); }
  ValueType infer_type(std::span<const ValueType> inputs) const override {
    return op_->infer_type(inputs);
  }
  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    return op_->needed(input, out, types);
  }
  InputAccess input_access(int input) const override { return op_->input_access(input); }
  bool differentiable(int) const override { return false; }
  bool trains_parameters() const override { return false; }
  Saved saved(const Box& out, const NodeTypes& types) const override {
    return op_->saved(out, types);
  }
  Statistics forward_statistics(const NodeTypes& types) const override {
    return op_->forward_statistics(types);
  }
  bool statistics_read(int input) const override { return op_->statistics_read(input); }
  bool depends_on_step() const override { return op_->depends_on_step(); }
  bool depends_on_place() const override { return op_->depends_on_place(); }
  int64_t batch_parts() const override { return op_->batch_parts(); }
  double flops(const Box& out, const NodeTypes& types) const override {
    return op_->flops(out, types);
  }
  double elements_moved(const Box& out, const NodeTypes& types) const override {
    return op_->elements_moved(out, types);
  }
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override {
    return op_->scratch_bytes(phase, out, types, numbers);
  }

  void forward(KernelArgs& args) const override {
    args.name = &name_;
    op_->forward(args);
  }
  void input_gradient(KernelArgs&) const override {}
  void piece_statistics(KernelArgs& args) const override {
    args.name = &name_;
    op_->piece_statistics(args);
  }
  void combine_statistics(const std::vector<at::Tensor>& rows,
                          const at::Tensor& combined) const override {
    op_->combine_statistics(rows, combined);
  }
  void merge_statistics(MergeArgs& args) const override { op_->merge_statistics(args); }

  at::Tensor reference(const ReferenceArgs& args) const override {
    c10::NoGradGuard no_gradients;
    ReferenceArgs own = args;
    own.name = &name_;
    return op_->reference(own);
  }

 private:
  std::shared_ptr<const Op> op_;
  std::string name_;
};

}  // namespace

std::shared_ptr<const Op> detached(const Node& node) {
  return std::make_shared<Detached>(node.op, node.name);
}

std::vector<ParameterId> buffers_of_copy(const Node& node) {
  const bool updates = node.op->forward_statistics(node.types).per_piece > 0;
  return updates ? std::vector<ParameterId>() : node.buffers;
}

}  // namespace tessera
