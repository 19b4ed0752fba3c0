#pragma once
// What space_sum.cpp hands to the kernels of space_sum.cu.

#include "tessera/kernels/cuda/norm_launch.h"

namespace tessera::cuda {

/// A row for each sample.
struct SpaceSumCall {
  NumberType type;
  ImageTiles tiles;
  Image x;
  PairOfSums* parts = nullptr;  // the second is 0
  double scale = 1;
  NumberType type_of_sums;
  void* sums = nullptr;
  int64_t row_stride = 0, channel_stride = 1;
};

cudaError_t launch(const SpaceSumCall& call, cudaStream_t stream);

}  // namespace tessera::cuda
