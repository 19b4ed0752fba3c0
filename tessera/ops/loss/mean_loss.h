#pragma once
// A loss that is the mean of its terms over all pixels that count. With labels the denominator is a
// statistic of the targets over the whole batch; real targets always count, so there it is known
// beforehand. Each owner of pixels adds its own terms. Where nothing counts the loss is NaN, as in
// PyTorch, and the gradients are 0.

#include "tessera/kernels/loss.h"
#include "tessera/ops/loss/pixel_loss.h"

namespace tessera {

class MeanLoss : public PixelLoss {
 public:
  Statistics forward_statistics(const NodeTypes& types) const override {
    return has_labels(types) ? Statistics{1, 1} : Statistics{};
  }
  bool statistics_read(int input) const override { return input == 1; }
  void piece_statistics(KernelArgs& args) const override;
  void forward(KernelArgs& args) const override;
  void input_gradient(KernelArgs& args) const override;

 protected:
  using PixelLoss::PixelLoss;

  virtual int64_t terms_per_pixel(int64_t channels) const { return channels; }
  virtual ElementLoss element_loss() const = 0;

 private:
  /// weight / number of terms, a float64 scalar.
  at::Tensor factor(const KernelArgs& args) const;
};

}  // namespace tessera
