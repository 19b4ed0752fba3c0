#pragma once
// Small tensors beside a large one: on its device, and of a shape that broadcasts to it.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace tessera::aten {

/// One axis of numbers as axis `axis` of `num_axes`; the others have size 1.
inline at::Tensor along_axis(const at::Tensor& numbers, int64_t axis, int64_t num_axes) {
  std::vector<int64_t> shape(static_cast<size_t>(num_axes), 1);
  shape[static_cast<size_t>(axis)] = numbers.numel();
  return numbers.reshape(shape);
}

/// begin, begin + 1, ... below end; int64.
inline at::Tensor count_up(int64_t begin, int64_t end, const at::Tensor& beside) {
  return at::arange(begin, end, beside.options().dtype(at::kLong));
}

/// Indices that the host knows.
inline at::Tensor indices(const std::vector<int64_t>& known, const at::Tensor& beside) {
  return at::tensor(known, at::kLong).to(beside.device());
}

/// Adds axes of size 1 after the channels: batch x channels x D x H x W.
inline at::Tensor as_volume(at::Tensor image) {
  while (image.dim() < 5) image = image.unsqueeze(2);
  return image;
}

/// The axes from the third on.
inline std::vector<int64_t> space_axes(const at::Tensor& image) {
  std::vector<int64_t> axes;
  for (int64_t axis = 2; axis < image.dim(); ++axis) axes.push_back(axis);
  return axes;
}

/// All axes but the channels; without the samples where each has sums of its own.
inline std::vector<int64_t> axes_of_sums(const at::Tensor& image, bool over_samples = true) {
  std::vector<int64_t> axes = space_axes(image);
  if (over_samples) axes.push_back(0);
  return axes;
}

}  // namespace tessera::aten
