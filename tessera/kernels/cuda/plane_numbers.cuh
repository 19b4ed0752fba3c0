#pragma once
// A PlaneNorm's numbers for the channels of a block, computed in float64 and rounded to the
// computing type once.

#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/norm_launch.h"

namespace tessera::cuda {

inline __device__ double number_of(const ChannelTable& table, int channel) {
  if (table.data == nullptr) return table.otherwise;
  const int64_t at = channel * table.stride;
  if (table.type == NumberType::kFloat64) return static_cast<const double*>(table.data)[at];
  if (table.type == NumberType::kFloat32) return static_cast<const float*>(table.data)[at];
  return widen(static_cast<const __nv_bfloat16*>(table.data)[at]);
}

inline __device__ double number_of(const CellTable& table, int64_t row, int64_t cell) {
  return table.data[row * table.row_stride + cell * table.cell_stride];
}

/// x * scale + shift. Backward decides by it which elements a ReLU let through, so no step of it is
/// left to the compiler to contract.
struct Affine {
  double scale, shift;

  __device__ Affine(const PlaneNumbers& norm, int64_t row, int channel) {
    const int cell = channel / norm.channels_of_cell;
    scale = number_of(norm.weight, channel) * number_of(norm.inverse_std, row, cell);
    shift = fma(-number_of(norm.mean, row, cell), scale, number_of(norm.bias, channel));
  }
};

/// Numbers of the channels of a block, of `kKinds` kinds, which one thread each computes.
template <class Real, int kWidth, int kKinds>
struct BlockNumbers {
  Real (*table)[kKinds];

  /// Called by all threads; compute(channel, numbers) fills an array of kKinds.
  template <class Compute>
  __device__ BlockNumbers(const ImageTiles& tiles, const TilePart& part, Compute&& compute) {
    __shared__ Real shared[kMostChannelThreads * kWidth][kKinds];
    table = shared;
    const int count = min(tiles.channel_threads * kWidth, tiles.channels - part.first_channel);
    for (int i = threadIdx.x; i < count; i += blockDim.x)
      compute(part.first_channel + i, shared[i]);
    __syncthreads();
  }
  /// Of the thread's channel i, from the memory of the block: for what registers have no room.
  __device__ Real of(const TilePart& part, int i, int kind) const {
    return table[part.channel - part.first_channel + i][kind];
  }
  __device__ void read(const TilePart& part, int kind, Real (&numbers)[kWidth]) const {
    if (part.is_idle) return;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) numbers[i] = of(part, i, kind);
  }
};

/// The gradient before the activation; `value` is what tells what it let through.
template <class Real>
__device__ Real gradient_before(Real value, Real gradient, Real low, Real high) {
  return value <= low || value >= high ? Real(0) : gradient;
}

}  // namespace tessera::cuda
