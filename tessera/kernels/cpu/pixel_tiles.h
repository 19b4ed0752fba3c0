#pragma once
// Walks views of batch x channels x space pixel by pixel, for kernels that work across the channels
// of a pixel. Some neighbouring pixels of a row make a tile: loops over channels are outside, loops
// over the pixels of a tile inside, where they are vectorised and running results stay in the
// cache. Batch x channels is a row of pixels, one for each entry of the batch.
//
// Example:
//   const PixelView<const float> x(input);
//   in_pixel_tiles(input, [&](const TilePlace& place) {
//     const PixelTile<const float> tile = x.tile(place);
//     ... tile(channel, p) for p below place.size ...
//   });

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "tessera/kernels/cpu/rows.h"

namespace tessera {

/// Where a tile lies in the images: batch x space, without channels.
struct TilePlace {
  static constexpr int64_t kMaxSize = 128;

  RowIndex row{};
  int64_t column = 0;
  int64_t size = 0;
  int64_t first_pixel = 0;  // its number among the view's pixels in row-major order
};

/// Channel c of pixel p.
template <class T>
struct PixelTile {
  T* data;
  int64_t channel_stride;
  int64_t stride;

  T& operator()(int64_t c, int64_t p) const { return data[c * channel_stride + p * stride]; }
};

template <class T>
class PixelView {
 public:
  /// A view with at least one channel.
  explicit PixelView(const at::Tensor& view)
      : first_(view.select(1, 0)),
        data_(view.data_ptr<std::remove_const_t<T>>()),
        channel_stride_(view.stride(1)) {}

  PixelTile<T> tile(const TilePlace& place) const {
    const int64_t stride = first_.strides().back();
    return {data_ + row_offset(place.row, first_.strides()) + place.column * stride,
            channel_stride_, stride};
  }

 private:
  at::Tensor first_;
  T* data_;
  int64_t channel_stride_;
};

/// Calls body(place) for all tiles of a view, of `most` pixels each, rows in parallel; bodies of
/// different rows must not depend on each other.
template <class Body>
void in_pixel_tiles(const at::Tensor& view, int64_t most, const Body& body) {
  const at::Tensor image = view.select(1, 0);
  const int64_t row_size = image.sizes().back();
  parallel_rows(image.sizes(), [&](int64_t row, const RowIndex& index) {
    for (int64_t column = 0; column < row_size; column += most)
      body(TilePlace{index, column, std::min(most, row_size - column), row * row_size + column});
  });
}

template <class Body>
void in_pixel_tiles(const at::Tensor& view, const Body& body) {
  in_pixel_tiles(view, TilePlace::kMaxSize, body);
}

}  // namespace tessera
