#pragma once
// What interpolate.cpp hands to the kernel of interpolate.cu.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tessera/kernels/cuda/pixel_threads.h"

namespace tessera::cuda {

/// One term of a result along an axis.
template <class Real>
struct AxisRead {
  Real weight;
  int32_t index;
};

/// In the device's memory: result i along the axis is the sum of the reads from begins[i] to
/// begins[i + 1].
struct AxisReads {
  const int32_t* begins = nullptr;
  const void* reads = nullptr;  // AxisRead of the computing type
};

struct InterpolateCall {
  PixelThreads threads;  // of the results
  AxisReads axes[3];
  Volume from, to;
};

cudaError_t launch_interpolation(const InterpolateCall& call, cudaStream_t stream);

}  // namespace tessera::cuda
