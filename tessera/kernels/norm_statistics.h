#pragma once
// The few numbers of a normalisation that lie between its passes over images: one call each, so
// that a GPU starts one kernel for them.
//
// Moments are cells x 3 (moments.h); all are float64 and contiguous but for what parameters are.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct NormStatisticsKernels {
  /// Stores the means, and 1 / sqrt(biased variance + epsilon).
  void (*mean_and_inverse_std)(const at::Tensor& moments, double epsilon, const at::Tensor& mean,
                               const at::Tensor& inverse_std);
  /// running = running * (1 - momentum) + now * momentum, with the unbiased variance.
  void (*update_running_moments)(const at::Tensor& moments, double momentum,
                                 const at::Tensor& running_mean,
                                 const at::Tensor& running_variance);
  /// Stores sums / count * weight; an undefined weight is 1. `sums` and `means` are 2 x channels.
  void (*gradient_means)(const at::Tensor& sums, double count, const at::Tensor& weight,
                         const at::Tensor& means);

  static const NormStatisticsKernels kAten;
  static const NormStatisticsKernels* const kCuda;
};
inline constexpr Kernel<&NormStatisticsKernels::mean_and_inverse_std> mean_and_inverse_std;
inline constexpr Kernel<&NormStatisticsKernels::update_running_moments> update_running_moments;
inline constexpr Kernel<&NormStatisticsKernels::gradient_means> gradient_means;

}  // namespace tessera
