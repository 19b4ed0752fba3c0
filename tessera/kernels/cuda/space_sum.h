#pragma once
// The launch behind kernels/space_sum.h.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tessera/kernels/cuda/norm_launch.h"

namespace tessera::cuda {

struct SpaceSumCall {
  NumberType type;
  ImageTiles tiles;  // a row for each sample
  Image x;
  PairOfSums* parts = nullptr;  // of which the second is 0
  double scale = 1;
  void* sums = nullptr;  // float64 for images of float64, else float32
  int64_t row_stride = 0, channel_stride = 0;
};

cudaError_t launch(const SpaceSumCall& call, cudaStream_t stream);

}  // namespace tessera::cuda
