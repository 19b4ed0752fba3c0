#pragma once
// A tensor of one to three spatial axes seen as N, C, D, H, W by pointer and strides, so that a
// kernel is written once for signals, slides and volumes. Rows lie contiguously; the rare view
// whose rows do not is copied (read_rows, write_rows), because inner loops with unknown strides are
// slow.
//
// Example:
//   const at::Tensor planes = read_rows(operand.view(box));
//   const ImageView<const float> x(planes);
//   const float* row = x.row(n, c, d, h);

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "tessera/kernels/cpu/tensor_numbers.h"

namespace tessera {

/// Adds axes of size 1 after the channels: N x C x D x H x W.
inline at::Tensor with_five_axes(at::Tensor tensor) {
  while (tensor.dim() < 5) tensor = tensor.unsqueeze(2);
  return tensor;
}

inline bool has_contiguous_rows(const at::Tensor& tensor) {
  return tensor.size(-1) <= 1 || tensor.stride(-1) == 1;
}

/// The view with five axes and contiguous rows, or a copy that has them.
inline at::Tensor read_rows(const at::Tensor& view) {
  const at::Tensor image = with_five_axes(view);
  return has_contiguous_rows(image) ? image : image.contiguous();
}

/// Calls write(image) with the view, or with a buffer that is then copied to the view; five axes
/// and contiguous rows in both cases. `write` must store every element.
template <class Write>
void write_rows(const at::Tensor& view, Write&& write) {
  const at::Tensor image = with_five_axes(view);
  if (has_contiguous_rows(image)) return write(image);
  const at::Tensor buffer = at::empty(image.sizes(), image.options());
  write(buffer);
  image.copy_(buffer);
}

template <class T>
struct ImageView {
  T* data;
  std::array<int64_t, 5> sizes;
  std::array<int64_t, 5> strides;

  explicit ImageView(const at::Tensor& image) : data(data_of<T>(image)) {
    for (int axis = 0; axis < 5; ++axis) {
      sizes[axis] = image.size(axis);
      strides[axis] = image.stride(axis);
    }
  }

  int64_t num_planes() const { return sizes[0] * sizes[1]; }
  T* plane(int64_t index) const {
    return data + index / sizes[1] * strides[0] + index % sizes[1] * strides[1];
  }
  T* row(int64_t n, int64_t c, int64_t d, int64_t h) const {
    return data + n * strides[0] + c * strides[1] + d * strides[2] + h * strides[3];
  }
  void fill_plane(int64_t index, T value) const {
    for (int64_t d = 0; d < sizes[2]; ++d)
      for (int64_t h = 0; h < sizes[3]; ++h)
        std::fill_n(plane(index) + d * strides[2] + h * strides[3], sizes[4], value);
  }
};

}  // namespace tessera
