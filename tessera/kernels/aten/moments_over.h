#pragma once
// The moments of a tensor's numbers, as ATen computes them.

#include <ATen/ATen.h>

#include "tessera/kernels/moments.h"

namespace tessera::aten {

/// Over these axes, in float64: count, mean and sum of squared distances from the mean are an axis
/// at the end.
inline at::Tensor moments_over(const at::Tensor& numbers, at::IntArrayRef axes) {
  const at::Tensor wide = numbers.to(at::kDouble);
  const at::Tensor mean = wide.mean(axes, /*keepdim=*/true);
  const at::Tensor squares = (wide - mean).square_().sum(axes);
  const auto count = static_cast<double>(numbers.numel() / squares.numel());
  return at::stack({at::full_like(squares, count), mean.view(squares.sizes()), squares}, -1);
}

}  // namespace tessera::aten
