#pragma once
// Images of five axes, N x C x D x H x W, of any strides, and how threads share them out: each has
// some neighbouring channels of one pixel. What a kernel does at one pixel of its image may read
// many of another's.

#include <cstdint>

#include "tessera/kernels/cuda/image_tiles.h"

namespace tessera::cuda {

/// Strides count elements.
struct Volume {
  void* data = nullptr;
  int64_t sample = 0, channel = 0;
  int64_t axes[3] = {};  // D, H, W
};

/// Of the image whose pixels threads have.
struct PixelThreads {
  NumberType type = NumberType::kFloat32;
  int64_t pixels = 1;  // of all samples
  int sizes[3] = {1, 1, 1};
  int channels = 1;
  int width = 1;  // channels of a thread
  int channel_threads = 1, pixel_threads = kThreads;
  int channel_tiles = 1;
  int64_t pixel_tiles = 1;

  int threads() const { return channel_threads * pixel_threads; }
  int64_t blocks() const { return channel_tiles * pixel_tiles; }
};

}  // namespace tessera::cuda
