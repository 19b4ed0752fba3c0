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

/// All axes of an image but the channels; without the samples where they are not summed over.
inline std::vector<int64_t> axes_of_sums(const at::Tensor& image, bool over_samples,
                                         int64_t first_axis_of_space) {
  std::vector<int64_t> axes;
  if (over_samples) axes.push_back(0);
  for (int64_t axis = first_axis_of_space; axis < image.dim(); ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace tessera::aten
