#pragma once
// Losses that are sums over the elements or the pixels of a prediction, and their gradients, for
// targets that are labels or real numbers. Sums are taken in float64, in an order that does not
// depend on the number of threads; views have any strides, and at least one element.
//
// Sums, and the factors of gradients, are float64 scalars on the device of the prediction, so that
// nothing has to wait for them.
//
// Example, the sum of squared errors:
//   const at::Tensor sum = loss_sum({.form = ElementLoss::Form::kSquared}, {prediction, target});
//   loss_gradient({.form = ElementLoss::Form::kSquared}, 1 / count, {prediction, target}, dx);

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct LossOperands {
  at::Tensor scores;            // the prediction: batch x channels x space, or batch x channels
  at::Tensor target;            // real numbers of the same shape, or labels without the channels
  int64_t ignore_index = -100;  // pixels with this label do not count
};

/// One channel's label is the target itself; of several channels, the one that the label names has
/// the target 1, the others 0.
struct ElementLoss {
  enum class Form {
    kSquared,
    kAbsolute,
    kSmoothAbsolute,  // parameter: beta
    kHuber,           // parameter: delta
    kLogistic,        // binary cross entropy of logits; channel_weights: of the targets 1
    kSigmoidFocal,    // parameter: gamma; alpha
    kSoftmaxFocal,    // parameter: gamma; channel_weights: of the classes; labels only
  };
  Form form = Form::kSquared;
  double parameter = 0;
  double alpha = -1;                         // weight of the targets 1; negative: none
  std::vector<double> channel_weights = {};  // none, one, or one for each channel
};

struct LossKernels {
  at::Tensor (*loss_sum)(const ElementLoss& loss, const LossOperands& operands);
  /// Stores the gradient of factor * loss_sum(), 0 where a pixel does not count.
  void (*loss_gradient)(const ElementLoss& loss, const at::Tensor& factor,
                        const LossOperands& operands, const at::Tensor& gradient);

  static const LossKernels kCpu;
  static const LossKernels kAten;
};
inline constexpr Kernel<&LossKernels::loss_sum> loss_sum;
inline constexpr Kernel<&LossKernels::loss_gradient> loss_gradient;

/// What the Dice loss knows of scores p and targets t.
struct DiceTerms {
  enum class Activation { kNone, kSigmoid, kSoftmax };
  Activation activation = Activation::kNone;
  bool squared = false;     // p² + t² instead of p + t
  int64_t first_class = 0;  // those before it have no part in the loss
};

struct DiceKernels {
  /// Σ p t, Σ (p + t) and the number of pixels that count: float64, samples x classes x 3.
  at::Tensor (*dice_overlaps)(const DiceTerms& terms, const LossOperands& operands);
  /// Stores the gradient of a function of the overlaps, whose derivatives by p are pull * t + push,
  /// or pull * t + 2 p push where squared; `pulls` holds both, samples x classes x 2.
  void (*dice_gradient)(const DiceTerms& terms, const LossOperands& operands,
                        const at::Tensor& pulls, const at::Tensor& gradient);

  static const DiceKernels kCpu;
  static const DiceKernels kAten;
};
inline constexpr Kernel<&DiceKernels::dice_overlaps> dice_overlaps;
inline constexpr Kernel<&DiceKernels::dice_gradient> dice_gradient;

}  // namespace tessera
