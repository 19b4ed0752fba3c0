#pragma once
// The device's side of image_tiles.h: which part of an image a thread has, the way from pixel to
// pixel, and numbers 16 bytes at a time.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "tessera/kernels/cuda/image_tiles.h"

namespace tessera::cuda {

/// The type to compute in.
template <class T>
struct ComputingType {
  using Type = T;
};
template <>
struct ComputingType<__nv_bfloat16> {
  using Type = float;
};
template <class T>
using Computing = typename ComputingType<T>::Type;

__device__ inline double widen(double number) { return number; }
__device__ inline float widen(float number) { return number; }
__device__ inline float widen(__nv_bfloat16 number) { return __bfloat162float(number); }

template <class T>
__device__ inline T narrow(Computing<T> number) {
  return number;
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float number) {
  return __float2bfloat16_rn(number);
}

__device__ inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return fma(a, b, c); }

template <int kBytes>
struct BytesOf;
template <>
struct BytesOf<2> {
  using Type = uint16_t;
};
template <>
struct BytesOf<4> {
  using Type = uint32_t;
};
template <>
struct BytesOf<8> {
  using Type = uint2;
};
template <>
struct BytesOf<16> {
  using Type = uint4;
};

/// Neighbouring numbers as one access moves them.
template <class T, int kWidth>
struct Packed {
  using Bytes = typename BytesOf<sizeof(T) * kWidth>::Type;
  Bytes bytes;

  __device__ void load(const T* from) { bytes = *reinterpret_cast<const Bytes*>(from); }
  __device__ void unpack(Computing<T> (&numbers)[kWidth]) const {
    T parts[kWidth];
    memcpy(parts, &bytes, sizeof(bytes));
#pragma unroll
    for (int i = 0; i < kWidth; ++i) numbers[i] = widen(parts[i]);
  }
};

template <class T, int kWidth>
__device__ inline void store(T* to, const Computing<T> (&numbers)[kWidth]) {
  T parts[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) parts[i] = narrow<T>(numbers[i]);
  typename BytesOf<sizeof(T) * kWidth>::Type bytes;
  memcpy(&bytes, parts, sizeof(bytes));
  *reinterpret_cast<decltype(bytes)*>(to) = bytes;
}

/// A place among the pixels that goes forward by pixel_threads.
template <int kAxes>
struct Place;

template <>
struct Place<1> {
  int64_t pixel;

  __device__ Place() {}
  __device__ Place(const Pixels&, int64_t first) : pixel(first) {}
  __device__ void advance(const ImageTiles& tiles) { pixel += tiles.pixel_threads; }
  __device__ int64_t offset(const Image& image) const {
    return pixel * image.strides[kPixelAxes - 1];
  }
};

template <>
struct Place<kPixelAxes> {
  int at[kPixelAxes];

  __device__ Place() {}
  __device__ Place(const Pixels& pixels, int64_t first) {
    if (pixels.count <= INT32_MAX)
      split(pixels, static_cast<uint32_t>(first));
    else
      split(pixels, first);
  }
  template <class Index>
  __device__ void split(const Pixels& pixels, Index rest) {
#pragma unroll
    for (int axis = kPixelAxes - 1; axis >= 0; --axis) {
      const Index size = static_cast<Index>(pixels.sizes[axis]);
      at[axis] = static_cast<int>(rest % size);
      rest /= size;
    }
  }
  /// One carry for each axis at most: the digits of a step are below the sizes.
  __device__ void advance(const ImageTiles& tiles) {
    int carry = 0;
#pragma unroll
    for (int axis = kPixelAxes - 1; axis >= 0; --axis) {
      const int size = static_cast<int>(tiles.pixels.sizes[axis]);
      // Sizes are below 2^31, and the sum is below 2^32.
      const uint32_t next = static_cast<uint32_t>(at[axis]) + tiles.steps[axis] + carry;
      carry = next >= static_cast<uint32_t>(size);
      at[axis] = static_cast<int>(carry ? next - size : next);
    }
  }
  __device__ int64_t offset(const Image& image) const {
    int64_t sum = 0;
#pragma unroll
    for (int axis = 0; axis < kPixelAxes; ++axis) sum += at[axis] * image.strides[axis];
    return sum;
  }
};

/// What the thread has to do.
struct TilePart {
  int64_t row;
  int64_t tile;        // of the row's pixels
  int64_t begin, end;  // pixels: this thread's first, and the end of the tile
  int first_channel;   // of the block
  int channel;         // the thread's first
  int pixel_thread;
  bool is_idle;  // the thread has no channels

  __device__ explicit TilePart(const ImageTiles& tiles) {
    const uint32_t block = blockIdx.x, tiles_of_row = static_cast<uint32_t>(tiles.pixel_tiles);
    const uint32_t line = block / tiles_of_row;
    tile = block - line * tiles_of_row;
    row = line / tiles.channel_tiles;
    pixel_thread = static_cast<int>(threadIdx.x) / tiles.channel_threads;
    const int channel_thread = static_cast<int>(threadIdx.x) % tiles.channel_threads;
    first_channel =
        static_cast<int>(line % tiles.channel_tiles) * tiles.channel_threads * tiles.width;
    channel = first_channel + channel_thread * tiles.width;
    is_idle = channel >= tiles.channels;
    begin = tile * tiles.tile_pixels + pixel_thread;
    end = min((tile + 1) * tiles.tile_pixels, tiles.pixels.count);
  }
  template <class T>
  __device__ T* of(const Image& image) const {
    return static_cast<T*>(image.data) + row * image.row_stride + channel;
  }
};

/// Calls visit(places, how many of them are there) for the thread's pixels, some at a time, so that
/// their loads are under way together.
template <int kAtOnce, int kAxes, class Visit>
__device__ inline void for_pixels(const ImageTiles& tiles, const TilePart& part, Visit&& visit) {
  if (part.is_idle || part.begin >= part.end) return;
  Place<kAxes> place(tiles.pixels, part.begin);
  int left =
      static_cast<int>((part.end - part.begin + tiles.pixel_threads - 1) / tiles.pixel_threads);
  for (; left > 0; left -= kAtOnce) {
    Place<kAxes> places[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      places[i] = place;
      place.advance(tiles);
    }
    visit(places, min(left, kAtOnce));
  }
}

}  // namespace tessera::cuda
