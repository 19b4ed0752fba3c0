// Sums over the pixels of each sample: threads add few numbers in the computing type, and what they
// have found is added in float64.

#include "tessera/kernels/cuda/space_sum_launch.h"

#include "tessera/kernels/cuda/image_walk.cuh"
#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/merge_parts.cuh"

namespace tessera::cuda {
namespace {

constexpr int kAtOnce = 4;  // loads of a thread that are under way together

template <class T, int kWidth, int kAxes>
__global__ void __launch_bounds__(kThreads, 2) space_sum_kernel(SpaceSumCall call) {
  using Real = Computing<T>;
  const TilePart part(call.tiles);
  const T* x = part.of<const T>(call.x);
  Real sum[kWidth] = {};
  for_pixels<kAtOnce, kAxes>(call.tiles, part, [&](const Place<kAxes>(&places)[kAtOnce], int n) {
    Packed<T, kWidth> loaded[kAtOnce];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
      if (p < n) loaded[p].load(x + places[p].offset(call.x));
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      if (p >= n) break;
      Real values[kWidth];
      loaded[p].unpack(values);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum[i] += values[i];
    }
  });
  PairOfSums sums[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sums[i] = {static_cast<double>(sum[i]), 0};
  write_parts<MergeSums>(call.tiles, part, 0, sums, call.parts);
}

/// A block for each channel of each row.
__global__ void __launch_bounds__(kMergingThreads) finish_space_sum_kernel(SpaceSumCall call) {
  const int64_t row = blockIdx.x / call.tiles.channels, channel = blockIdx.x % call.tiles.channels;
  int64_t count;
  const PairOfSums sum = merge_channels<MergeSums>(call.tiles, call.parts, row, channel, 1, count);
  if (threadIdx.x != 0) return;
  const int64_t at = row * call.row_stride + channel * call.channel_stride;
  if (call.type_of_sums == NumberType::kFloat64)
    static_cast<double*>(call.sums)[at] = sum.first * call.scale;
  else
    static_cast<float*>(call.sums)[at] = static_cast<float>(sum.first * call.scale);
}

}  // namespace

cudaError_t launch(const SpaceSumCall& call, cudaStream_t stream) {
  const cudaError_t error =
      choose_variant(call.type, call.tiles, [&](auto tag, auto width, auto axes) {
        using T = typename decltype(tag)::Type;
        return launch_kernel(space_sum_kernel<T, decltype(width)::value, decltype(axes)::value>,
                             call.tiles.blocks(), call.tiles.threads(), stream, call);
      });
  if (error != cudaSuccess) return error;
  return launch_kernel(finish_space_sum_kernel, call.tiles.rows * call.tiles.channels,
                       kMergingThreads, stream, call);
}

}  // namespace tessera::cuda
