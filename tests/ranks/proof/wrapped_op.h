#pragma once
// An operator that asks another one everything: the base of operators that are wrong in one place.

#include <memory>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

class WrappedOp : public Op {
 public:
  explicit WrappedOp(std::shared_ptr<const Op> right) : right_(std::move(right)) {}

  std::string kind() const override { return "wrapped " + right_->kind(); }
  ValueType infer_type(std::span<const ValueType> inputs) const override {
    return right_->infer_type(inputs);
  }
  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    return right_->needed(input, out, types);
  }
  InputAccess input_access(int input) const override { return right_->input_access(input); }
  bool keeps_input(int input) const override { return right_->keeps_input(input); }
  bool keeps_output() const override { return right_->keeps_output(); }
  bool differentiable(int input) const override { return right_->differentiable(input); }
  Saved saved(const Box& out, const NodeTypes& types) const override {
    return right_->saved(out, types);
  }
  bool cheap_to_recompute() const override { return right_->cheap_to_recompute(); }
  Statistics forward_statistics(const NodeTypes& types) const override {
    return right_->forward_statistics(types);
  }
  int64_t backward_statistics(const NodeTypes& types) const override {
    return right_->backward_statistics(types);
  }
  bool statistics_read(int input) const override { return right_->statistics_read(input); }
  bool weight_gradient_from_statistics() const override {
    return right_->weight_gradient_from_statistics();
  }
  int64_t batch_parts() const override { return right_->batch_parts(); }
  ScratchBytes scratch_bytes(Phase phase, const Box& out, const NodeTypes& types,
                             const Numbers& numbers) const override {
    return right_->scratch_bytes(phase, out, types, numbers);
  }

  void forward(KernelArgs& args) const override { right_->forward(args); }
  void input_gradient(KernelArgs& args) const override { right_->input_gradient(args); }
  void weight_gradient(KernelArgs& args) const override { right_->weight_gradient(args); }
  void piece_statistics(KernelArgs& args) const override { right_->piece_statistics(args); }
  void combine_statistics(const std::vector<at::Tensor>& rows,
                          const at::Tensor& combined) const override {
    right_->combine_statistics(rows, combined);
  }
  void merge_statistics(MergeArgs& args) const override { right_->merge_statistics(args); }
  void update_buffers(UpdateArgs& args) const override { right_->update_buffers(args); }
  void piece_grad_statistics(KernelArgs& args) const override {
    right_->piece_grad_statistics(args);
  }
  at::Tensor reference(const ReferenceArgs& args) const override { return right_->reference(args); }

 protected:
  const std::shared_ptr<const Op> right_;
};

/// Whether a piece lies at the left border of the image.
inline bool is_leftmost(const Box& piece) { return piece[piece.num_axes() - 1].begin == 0; }

}  // namespace tessera
