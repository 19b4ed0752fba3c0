#include "tessera/kernels/cuda/launch_kernel.cuh"
#include "tessera/kernels/cuda/pixel_losses.h"
#include "tessera/kernels/cuda/strided_walk.cuh"
#include "tessera/kernels/cuda/sum_over_block.cuh"

namespace tessera::cuda {
namespace {

/// The first that is not 0, in the threads' order; 0: none.
__device__ int64_t first_over_block(int64_t mine) {
  __shared__ int64_t found[kThreads];
  found[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = 1; half < kThreads; half *= 2) {
    if (threadIdx.x % (2 * half) == 0 && found[threadIdx.x] == 0)
      found[threadIdx.x] = found[threadIdx.x + half];
    __syncthreads();
  }
  return found[0];
}

__global__ void __launch_bounds__(kThreads)
    sum_parts_of_labels(const __grid_constant__ LabelSumCall call, double* parts,
                        int64_t* illegal_parts) {
  const int64_t begin = blockIdx.x * kPixelsOfPart;
  const int64_t end = min(begin + kPixelsOfPart, call.pixels.count);
  double sum = 0;
  int64_t illegal = 0;
  for (int64_t pixel = begin + threadIdx.x; pixel < end; pixel += kThreads) {
    const int64_t label = call.labels[WalkPlace(call.pixels, pixel).offsets[0]];
    if (label == call.ignore_index) continue;
    if (label < 0 || label >= call.num_labels) {
      if (illegal == 0) illegal = label;
      continue;
    }
    sum += call.weights.are_given ? call.weights.of_class[label] : 1.0;
  }
  sum = sum_over_block(sum);
  illegal = first_over_block(illegal);
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = sum;
  illegal_parts[blockIdx.x] = illegal;
}

__global__ void __launch_bounds__(kThreads)
    merge_parts_of_labels(const double* parts, const int64_t* illegal_parts, int64_t count,
                          double* sum, int64_t* illegal) {
  const double all = sum_of(parts, count);
  int64_t mine = 0;
  for (int64_t i = threadIdx.x; i < count && mine == 0; i += kThreads) mine = illegal_parts[i];
  const int64_t found = first_over_block(mine);
  if (threadIdx.x != 0) return;
  *sum = found == 0 ? all : nan("");
  if (found != 0) *illegal = found;
}

}  // namespace

cudaError_t sum_labels(const LabelSumCall& call, double* parts, int64_t* illegal_parts, double* sum,
                       int64_t* illegal, cudaStream_t stream) {
  const int64_t count = parts_of_pixels(call.pixels.count);
  const cudaError_t error =
      launch_kernel(sum_parts_of_labels, count, kThreads, stream, call, parts, illegal_parts);
  if (error != cudaSuccess) return error;
  const double* const sums = parts;
  const int64_t* const found = illegal_parts;
  return launch_kernel(merge_parts_of_labels, int64_t{1}, kThreads, stream, sums, found, count, sum,
                       illegal);
}

}  // namespace tessera::cuda
