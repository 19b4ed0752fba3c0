#pragma once
// Labels from other places of a view, along each axis by itself.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct LabelPickKernels {
  /// to[i, j, ...] = from[places[0][i], places[1][j], ...], int64, views of any strides.
  void (*pick_labels)(const at::Tensor& from, const std::vector<std::vector<int64_t>>& places,
                      const at::Tensor& to);

  static const LabelPickKernels kCpu;
  static const LabelPickKernels kAten;
};
inline constexpr Kernel<&LabelPickKernels::pick_labels> pick_labels;

}  // namespace tessera
