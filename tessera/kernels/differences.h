#pragma once
// How far predictions are from their targets, apart from what all elements of a sample are off by:
// the scale-invariant error of logarithms (Eigen, Puhrsch and Fergus, 2014).

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/kernels/kernel.h"
#include "tessera/kernels/loss.h"
#include "tessera/kernels/norm.h"

namespace tessera {

struct DifferenceKernels {
  /// Of prediction minus target, for each sample of the operands.
  std::vector<Moments> (*difference_moments)(const LossOperands& operands);
  /// Stores factor * (prediction - target - mean of the sample).
  void (*centred_difference)(const LossOperands& operands, double factor,
                             std::span<const double> means, const at::Tensor& gradient);

  static const DifferenceKernels kCpu;
};
inline constexpr Kernel<&DifferenceKernels::difference_moments> difference_moments;
inline constexpr Kernel<&DifferenceKernels::centred_difference> centred_difference;

}  // namespace tessera
