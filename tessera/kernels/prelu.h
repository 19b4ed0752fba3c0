#pragma once
// PReLU: numbers up to 0 are multiplied by a slope. Views of any strides, batch x channels x up to
// 3 more axes; one slope for each channel of the views.
//
// Example:
//   apply_slopes(x, x, slopes, y);      // forward
//   apply_slopes(x, dy, slopes, dx);    // the input's gradient

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct PreluKernels {
  /// out = value where x > 0, else slope * value.
  void (*apply_slopes)(const at::Tensor& x, const at::Tensor& value, const at::Tensor& slopes,
                       const at::Tensor& out);
  /// The sum of x * dy over the elements that are multiplied by a slope, float64, for each channel;
  /// in an order that does not depend on the number of threads.
  at::Tensor (*slope_gradients)(const at::Tensor& x, const at::Tensor& grad_y);

  static const PreluKernels kCpu;
  static const PreluKernels kAten;
};
inline constexpr Kernel<&PreluKernels::apply_slopes> apply_slopes;
inline constexpr Kernel<&PreluKernels::slope_gradients> slope_gradients;

}  // namespace tessera
