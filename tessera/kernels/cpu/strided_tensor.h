#pragma once
// Tensors of one to three spatial axes as images by pointer and strides.

#include <ATen/ATen.h>

#include <algorithm>
#include <type_traits>

#include "tessera/kernels/cpu/strided_image.h"
#include "tessera/kernels/cpu/tensor_numbers.h"

namespace tessera {

/// Entries of the last axes; those before them are `other`.
inline SpaceAxes last_axes(at::IntArrayRef entries, int64_t other) {
  SpaceAxes axes{other, other, other};
  std::copy(entries.begin(), entries.end(), axes.end() - std::ssize(entries));
  return axes;
}

template <class T>
StridedImage<T> image_of(const at::Tensor& tensor) {
  StridedImage<T> image;
  image.data = data_of<T>(tensor);
  image.batch = tensor.size(0);
  image.channels = tensor.size(1);
  image.batch_stride = tensor.stride(0);
  image.channel_stride = tensor.stride(1);
  image.size = last_axes(tensor.sizes().slice(2), 1);
  image.stride = last_axes(tensor.strides().slice(2), 0);
  return image;
}

template <class T>
const T* pointer_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<T>() : nullptr;
}

}  // namespace tessera
