#pragma once
// What losses of features alone share: they compare values of the network with each other, and have
// no target. Domains are pulled together or pushed apart by them. The output is never stored; it
// has the type batch x space of the first input, so that a loss is cut into pieces of pixels with
// all of their channels. The factor on the loss may change with the step.

#include "tessera/base/step_function.h"
#include "tessera/graph/op.h"

namespace tessera {

class FeatureLoss : public Op {
 public:
  ValueType infer_type(std::span<const ValueType> inputs) const override;
  Box needed(int input, const Box& out, const NodeTypes& types) const override;
  bool is_loss() const override { return true; }
  bool depends_on_step() const override { return true; }
  bool keeps_input(int) const override { return true; }

 protected:
  explicit FeatureLoss(const StepFunction& weight) : weight_(weight) {}

  /// Throws InvalidInput where the inputs do not fit each other or the options.
  virtual void check_inputs(std::span<const ValueType> inputs) const = 0;

  double weight_at(int64_t step) const { return weight_.at(step); }
  /// `text`, followed by "weight 0.5" where the weight is not 1.
  std::string with_weight(std::string text) const;
  /// The part of the whole output that a piece is.
  static double share_of_piece(const KernelArgs& args);

 private:
  StepFunction weight_;
};

}  // namespace tessera
