#pragma once
// Sums over space, in float64.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct SpaceSumKernels {
  /// sums[n, c] = scale * Σ x[n, c, ...], float32 where x is of type bf16. Views of any strides,
  /// with 1 to 3 spatial axes and at least one pixel; in an order that does not depend on the
  /// number of threads.
  void (*sum_space)(const at::Tensor& x, double scale, const at::Tensor& sums);

  static const SpaceSumKernels kCpu;
  static const SpaceSumKernels kAten;
  static const SpaceSumKernels* const kCuda;
};
inline constexpr Kernel<&SpaceSumKernels::sum_space> sum_space;

}  // namespace tessera
