#pragma once
// N x C x D x H x W by pointer and strides, any of them: a view of a larger buffer as well as a
// tensor of its own. Signals and slides have axes of size 1 before their own.

#include <array>
#include <cstdint>

namespace tessera {

using SpaceAxes = std::array<int64_t, 3>;  // D, H, W

template <class T>
struct StridedImage {
  T* data = nullptr;
  int64_t batch = 0, channels = 0;
  int64_t batch_stride = 0, channel_stride = 0;
  SpaceAxes size{}, stride{};

  T* plane(int64_t n, int64_t c) const { return data + n * batch_stride + c * channel_stride; }
  int64_t num_pixels() const { return size[0] * size[1] * size[2]; }
};

/// Whether the pixels of a row can be read together.
template <class T>
bool has_contiguous_rows(const StridedImage<T>& image) {
  return image.stride[2] == 1 || image.size[2] == 1;
}

/// Whether the pixels of a channel lie one after the other.
template <class T>
bool has_contiguous_pixels(const StridedImage<T>& image) {
  const SpaceAxes &size = image.size, &stride = image.stride;
  return has_contiguous_rows(image) && (size[1] == 1 || stride[1] == size[2]) &&
         (size[0] == 1 || stride[0] == size[1] * size[2]);
}

}  // namespace tessera
