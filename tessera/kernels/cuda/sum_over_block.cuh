#pragma once
// Sums of doubles over the threads of a block, always in the same order.

#include <cuda_runtime.h>

#include <cstdint>

#include "tessera/kernels/cuda/image_tiles.h"

namespace tessera::cuda {

/// All threads of the block, kThreads of them, call it and get the sum.
__device__ inline double sum_over_block(double mine) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

/// Of numbers in memory, by one block.
__device__ inline double sum_of(const double* numbers, int64_t count) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += numbers[i];
  return sum_over_block(sum);
}

}  // namespace tessera::cuda
