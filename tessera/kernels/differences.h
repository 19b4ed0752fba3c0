#pragma once
// How far predictions are from their targets, apart from what all elements of a sample are off by:
// the scale-invariant error of logarithms (Eigen, Puhrsch and Fergus, 2014).

#include "tessera/kernels/kernel.h"
#include "tessera/kernels/loss.h"
#include "tessera/kernels/moments.h"

namespace tessera {

struct DifferenceKernels {
  /// Stores those of prediction minus target, for each sample of the operands: samples x 3.
  void (*difference_moments)(const LossOperands& operands, const at::Tensor& moments);
  /// Stores factor * (prediction - target - mean of the sample); the means are float64.
  void (*centred_difference)(const LossOperands& operands, double factor, const at::Tensor& means,
                             const at::Tensor& gradient);

  static const DifferenceKernels kCpu;
  static const DifferenceKernels kAten;
};
inline constexpr Kernel<&DifferenceKernels::difference_moments> difference_moments;
inline constexpr Kernel<&DifferenceKernels::centred_difference> centred_difference;

}  // namespace tessera
