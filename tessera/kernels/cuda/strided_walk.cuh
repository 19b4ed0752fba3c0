#pragma once
// The device's side of strided_walk.h.

#include <cuda_runtime.h>

#include "tessera/kernels/cuda/strided_walk.h"

namespace tessera::cuda {

/// Where an element lies in each of the views.
struct WalkPlace {
  int64_t offsets[kWalkViews] = {};

  /// The element with this number, in the order of the walk.
  __device__ WalkPlace(const StridedWalk& walk, int64_t number) {
    if (walk.count <= INT32_MAX)
      find(walk, static_cast<uint32_t>(number));
    else
      find(walk, static_cast<uint64_t>(number));
  }

 private:
  template <class Index>
  __device__ void find(const StridedWalk& walk, Index rest) {
    for (int axis = walk.num_axes - 1; axis > 0; --axis) {
      const Index size = static_cast<Index>(walk.sizes[axis]), before = rest / size;
      add(walk, axis, static_cast<int64_t>(rest - before * size));
      rest = before;
    }
    if (walk.num_axes > 0) add(walk, 0, static_cast<int64_t>(rest));
  }
  __device__ void add(const StridedWalk& walk, int axis, int64_t position) {
#pragma unroll
    for (int view = 0; view < kWalkViews; ++view)
      offsets[view] += position * walk.strides[view][axis];
  }
};

}  // namespace tessera::cuda
