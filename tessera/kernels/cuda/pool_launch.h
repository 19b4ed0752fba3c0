#pragma once
// What the pooling's .cpp files hand to the kernels: images of five axes, N x C x D x H x W, and
// the windows that join them. Threads have some neighbouring channels of one pixel each.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tessera/kernels/cuda/pixel_threads.h"

namespace tessera::cuda {

/// One of the axes D, H, W. Output o has tap k at input first + o * stride + k * dilation; both are
/// counted from the first of the piece.
struct WindowAxis {
  int kernel = 1, stride = 1, dilation = 1;
  int first = 0;
  int outputs = 1, inputs = 1;
  int padded_end = 1;  // where the padding after the image ends
};

/// Choices, one byte or an int32 each, are in the order samples, pixels, channels.
struct MaxPoolCall {
  PixelThreads threads;
  WindowAxis axes[3];
  Volume x, y;  // or their gradients
  void* choices = nullptr;
  bool has_wide_choices = false;
};

/// A window's sum is divided by `divisor`, or where that is 0 by the number of its elements.
struct AveragePoolCall {
  PixelThreads threads;
  WindowAxis axes[3];
  Volume x, y;
  bool counts_padding = true;
  double divisor = 0;
};

cudaError_t launch_maxima(const MaxPoolCall& call, cudaStream_t stream);
/// Threads have outputs, and each input lies in one window.
cudaError_t launch_maxima_scatter(const MaxPoolCall& call, cudaStream_t stream);
/// Threads have inputs.
cudaError_t launch_maxima_gather(const MaxPoolCall& call, cudaStream_t stream);

cudaError_t launch_averages(const AveragePoolCall& call, cudaStream_t stream);
/// Threads have inputs.
cudaError_t launch_averages_gather(const AveragePoolCall& call, cudaStream_t stream);

}  // namespace tessera::cuda
