#pragma once
// The launch behind kernels/dropout.h.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tessera/kernels/cuda/image_tiles.h"
#include "tessera/kernels/cuda/strided_walk.h"

namespace tessera::cuda {

struct DropoutCall {
  NumberType type = NumberType::kFloat32;
  StridedWalk walk;  // views: the target, the source, the indices of draws
  const void* source = nullptr;
  void* target = nullptr;
  uint64_t key_state = 0;
  const int64_t* state_on_device = nullptr;  // null: key_state
  int64_t first_index = 0;
  uint64_t dropped_below = 0;  // of the upper 53 bits of a draw
  double kept_factor = 0, kept_offset = 0, dropped_factor = 0, dropped_offset = 0;
};

/// There are elements.
cudaError_t drop_out(const DropoutCall& call, cudaStream_t stream);

}  // namespace tessera::cuda
