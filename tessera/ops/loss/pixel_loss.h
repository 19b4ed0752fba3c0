#pragma once
// What all losses share: geometry, types and labels. A loss reads a prediction, batch x channels x
// space (or batch x channels), and a target, which is labels of batch x space or real numbers of
// the prediction's shape. Its output is never stored; it has the type batch x space, so that a loss
// is cut into pieces of pixels with all of their channels.

#include <cmath>
#include <cstdint>
#include <vector>

#include "tessera/graph/op.h"
#include "tessera/kernels/loss.h"

namespace tessera {

class PixelLoss : public Op {
 public:
  ValueType infer_type(std::span<const ValueType> inputs) const override;
  Box needed(int input, const Box& out, const NodeTypes& types) const override;
  bool is_loss() const override { return true; }
  bool differentiable(int input) const override { return input == 0; }
  bool keeps_input(int) const override { return true; }
  void refuse_label(int64_t label, const std::string& name, const NodeTypes& types) const override;
  double flops(const Box& out, const NodeTypes& types) const override {
    return 4.0 * static_cast<double>(out.volume() * types.inputs[0].channels());
  }

 protected:
  /// `weight` is the factor on the loss; labels equal to `ignore_index` do not count.
  PixelLoss(double weight, int64_t ignore_index) : weight_(weight), ignore_index_(ignore_index) {}

  /// Whether the loss understands labels / real targets.
  virtual bool takes(Element target) const = 0;
  /// Throws InvalidInput where the options do not fit the prediction.
  virtual void check_options(const ValueType& prediction) const = 0;
  /// Labels lie in [0, num_labels). One channel of a two-class loss stands for labels 0 and 1.
  virtual int64_t num_labels(int64_t channels) const { return std::max<int64_t>(channels, 2); }

  double weight() const { return weight_; }
  int64_t ignore_index() const { return ignore_index_; }
  static bool has_labels(const NodeTypes& types) {
    return types.inputs[1].element == Element::kIndex;
  }
  /// "1/2/0.5", as users write factors of classes.
  static std::string slashed(const std::vector<double>& factors);
  /// `text`, followed by "weight 0.5" where the weight is not 1.
  std::string with_weight(std::string text) const;

  /// The piece's part of prediction and target; it is not empty.
  LossOperands operands(const KernelArgs& args) const;
  /// The sum of the piece's labels that count, each with its weight; no weights: all 1. A float64
  /// scalar, NaN where a label is not legal, which then is an InvalidInput: at once, unless
  /// args.illegal_label keeps it for later.
  at::Tensor sum_over_labels(const KernelArgs& args, const std::vector<double>& weights = {}) const;

 private:
  double weight_;
  int64_t ignore_index_;
};

}  // namespace tessera
