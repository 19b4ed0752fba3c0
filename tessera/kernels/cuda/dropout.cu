#include "tessera/kernels/cuda/dropout.h"

#include "tessera/base/random.h"
#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/strided_walk.cuh"

namespace tessera::cuda {
namespace {

constexpr int kElementsOfThread = 4;

/// The elements of a thread are a block's threads apart. Product and sum are rounded one by one, as
/// on the CPU.
template <class T>
__global__ void __launch_bounds__(kThreads) drop(const __grid_constant__ DropoutCall call) {
  using Real = Computing<T>;
  const uint64_t state = call.state_on_device == nullptr
                             ? call.key_state
                             : static_cast<uint64_t>(*call.state_on_device);
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * kThreads * kElementsOfThread + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kElementsOfThread; ++i) {
    const int64_t number = first + i * kThreads;
    if (number >= call.walk.count) return;
    const WalkPlace place(call.walk, number);
    const uint64_t index = static_cast<uint64_t>(call.first_index + place.offsets[2]);
    const bool stays = RandomKey::of_state(state).bits(index) >> 11 >= call.dropped_below;
    const Real x = widen(static_cast<const T*>(call.source)[place.offsets[1]]);
    const Real factor = static_cast<Real>(stays ? call.kept_factor : call.dropped_factor);
    const Real offset = static_cast<Real>(stays ? call.kept_offset : call.dropped_offset);
    static_cast<T*>(call.target)[place.offsets[0]] = narrow<T>(x * factor + offset);
  }
}

}  // namespace

cudaError_t drop_out(const DropoutCall& call, cudaStream_t stream) {
  const int64_t of_block = kThreads * kElementsOfThread;
  const int64_t blocks = (call.walk.count + of_block - 1) / of_block;
  if (call.type == NumberType::kFloat64)
    return launch_kernel(drop<double>, blocks, kThreads, stream, call);
  if (call.type == NumberType::kFloat32)
    return launch_kernel(drop<float>, blocks, kThreads, stream, call);
  return launch_kernel(drop<__nv_bfloat16>, blocks, kThreads, stream, call);
}

}  // namespace tessera::cuda
