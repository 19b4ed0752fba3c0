#pragma once
// Channels-last images as the GPU's kernels see them, and how blocks of threads share them out. A
// thread keeps to some neighbouring channels, which it reads 16 bytes at a time where they lie so,
// and visits pixels at equal distances; the threads of a block read neighbouring memory.
//
//   tid:       0    1    2    3    4    5  ...       channel_threads = 3, pixel_threads = 85
//   pixel:     0    0    0    1    1    1
//   channels: 0-7 8-15 16-23 0-7 8-15 16-23          24 channels, 8 to a thread
//
// Nothing here depends on the GPU, so neither do the bits of a sum over tiles.

#include <cstdint>

namespace tessera::cuda {

enum class NumberType { kFloat64, kFloat32, kBFloat16 };

inline constexpr int kThreads = 256;
inline constexpr int kPixelAxes = 4;
inline constexpr int kMostChannelThreads = 64;

/// Its channels have stride 1. Strides count elements.
struct Image {
  void* data = nullptr;
  int64_t row_stride = 0;
  int64_t strides[kPixelAxes] = {};
};

/// Pixels that share statistics, in row-major order of their axes. Images that are dense have one
/// axis, the last, and its size may exceed 2^31; else all sizes are below.
struct Pixels {
  int64_t count = 1;
  int num_axes = 1;  // 1 or kPixelAxes
  int64_t sizes[kPixelAxes] = {1, 1, 1, 1};
};

struct ImageTiles {
  Pixels pixels;
  int64_t rows = 1;  // of statistics: each has all the pixels
  int channels = 1;
  int width = 1;  // channels of a thread
  int channel_threads = 1, pixel_threads = kThreads;
  int channel_tiles = 1;
  int64_t tile_pixels = 1;
  int64_t pixel_tiles = 1;
  int steps[kPixelAxes] = {};  // pixel_threads as digits of the pixels' axes

  int threads() const { return channel_threads * pixel_threads; }
  int64_t blocks() const { return rows * channel_tiles * pixel_tiles; }
};

/// Large images have tiles of `most_pixels` for each thread, small ones smaller tiles, so that all
/// of a GPU is busy.
ImageTiles share_out(const Pixels& pixels, int64_t rows, int channels, int width, int most_pixels);

}  // namespace tessera::cuda
