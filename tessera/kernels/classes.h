#pragma once
// The most probable class of every pixel, on strided views and in parallel. ATen's argmax takes
// many times as long where the classes are not the last axis.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct ClassKernels {
  /// `scores` are batch x classes x space, real; gives batch x space, int64. Of equal scores the
  /// first wins, and NaN wins over every number, as in ATen.
  at::Tensor (*classes_with_largest_score)(const at::Tensor& scores);

  static const ClassKernels kCpu;
  static const ClassKernels kAten;
};
inline constexpr Kernel<&ClassKernels::classes_with_largest_score> classes_with_largest_score;

}  // namespace tessera
