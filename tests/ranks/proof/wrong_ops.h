#pragma once
// Operators that are wrong on all pieces but those of the left border; the oracle has them right.

#include "tests/ranks/proof/wrapped_op.h"

namespace tessera {

/// Dropout whose mask is drawn with the index of the next pixel.
class ShiftedDropout final : public WrappedOp {
 public:
  using WrappedOp::WrappedOp;
  void forward(KernelArgs& args) const override {
    KernelArgs shifted = shift(args);
    right_->forward(shifted);
  }
  void input_gradient(KernelArgs& args) const override {
    KernelArgs shifted = shift(args);
    right_->input_gradient(shifted);
  }

 private:
  static KernelArgs shift(const KernelArgs& args) {
    KernelArgs shifted = args;
    if (is_leftmost(args.out_box)) return shifted;
    for (Operand& input : shifted.inputs) move(&input.box);
    for (Operand& gradient : shifted.grad_inputs) move(&gradient.box);
    for (Box* box : {&shifted.out_box, &shifted.output.box, &shifted.grad_output.box}) move(box);
    return shifted;
  }
  static void move(Box* box) {
    if (box->num_axes() == 0) return;
    Range& columns = (*box)[box->num_axes() - 1];
    columns = {columns.begin + 1, columns.end + 1};
  }
};

/// A norm whose pieces give statistics that are wrong in the eighth digit, forward or backward.
class WrongStatistics final : public WrappedOp {
 public:
  enum class Where { kForward, kBackward };
  WrongStatistics(std::shared_ptr<const Op> right, Where where)
      : WrappedOp(std::move(right)), where_(where) {}
  void piece_statistics(KernelArgs& args) const override {
    right_->piece_statistics(args);
    if (where_ == Where::kForward && !is_leftmost(args.out_box))
      args.piece_statistics.mul_(1 + 1e-8);
  }
  void piece_grad_statistics(KernelArgs& args) const override {
    right_->piece_grad_statistics(args);
    if (where_ == Where::kBackward && !is_leftmost(args.out_box))
      args.piece_grad_statistics.mul_(1 + 1e-8);
  }

 private:
  const Where where_;
};

}  // namespace tessera
