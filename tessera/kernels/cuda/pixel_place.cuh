#pragma once
// The device's side of pixel_threads.h: which pixel and channels a thread has.

#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/pixel_threads.h"

namespace tessera::cuda {

struct PixelPlace {
  int64_t pixel;  // of all samples
  int64_t sample;
  int at[3];
  int channel;
  bool is_idle;

  __device__ explicit PixelPlace(const PixelThreads& threads) {
    const uint32_t tiles = static_cast<uint32_t>(threads.channel_tiles);
    const uint32_t pixel_tile = blockIdx.x / tiles, channel_tile = blockIdx.x - pixel_tile * tiles;
    const int line = static_cast<int>(threadIdx.x) / threads.channel_threads;
    const int column = static_cast<int>(threadIdx.x) - line * threads.channel_threads;
    pixel = static_cast<int64_t>(pixel_tile) * threads.pixel_threads + line;
    channel = (static_cast<int>(channel_tile) * threads.channel_threads + column) * threads.width;
    is_idle = pixel >= threads.pixels || channel >= threads.channels;
    if (threads.pixels <= UINT32_MAX)
      split(threads, static_cast<uint32_t>(pixel));
    else
      split(threads, static_cast<uint64_t>(pixel));
  }
  template <class Index>
  __device__ void split(const PixelThreads& threads, Index rest) {
#pragma unroll
    for (int axis = 2; axis >= 0; --axis) {
      const Index size = static_cast<Index>(threads.sizes[axis]), next = rest / size;
      at[axis] = static_cast<int>(rest - next * size);
      rest = next;
    }
    sample = static_cast<int64_t>(rest);
  }
  /// The thread's channels at pixel (0, 0, 0) of its sample.
  template <class T>
  __device__ T* base(const Volume& image) const {
    return static_cast<T*>(image.data) + sample * image.sample + channel * image.channel;
  }
  /// And at its own pixel.
  template <class T>
  __device__ T* own(const Volume& image) const {
    int64_t offset = 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) offset += at[axis] * image.axes[axis];
    return base<T>(image) + offset;
  }
};

__device__ inline int64_t offset_of(const Volume& image, const int (&at)[3]) {
  return at[0] * image.axes[0] + at[1] * image.axes[1] + at[2] * image.axes[2];
}

/// run(TypeTag<T>, Number<width>); widths are 1 and what makes 16 bytes.
template <class Run>
cudaError_t choose_width(const PixelThreads& threads, Run&& run) {
  const auto with_width = [&](auto tag, auto widest) {
    return threads.width == 1 ? run(tag, Number<1>{}) : run(tag, widest);
  };
  if (threads.type == NumberType::kFloat64) return with_width(TypeTag<double>{}, Number<2>{});
  if (threads.type == NumberType::kFloat32) return with_width(TypeTag<float>{}, Number<4>{});
  return with_width(TypeTag<__nv_bfloat16>{}, Number<8>{});
}

}  // namespace tessera::cuda
