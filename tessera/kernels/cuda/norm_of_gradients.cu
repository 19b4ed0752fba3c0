#include "tessera/kernels/cuda/norm_of_gradients.h"

#include "tessera/kernels/cuda/sum_over_block.cuh"

namespace tessera::cuda {
namespace {

/// One part for each block. Numbers are read one by one, since runs begin anywhere.
template <class T>
__global__ void __launch_bounds__(kThreads)
    square_parts(const T* numbers, int64_t count, double* parts) {
  const int64_t begin = blockIdx.x * kSquaresInPart;
  const int size =
      static_cast<int>(count - begin < kSquaresInPart ? count - begin : kSquaresInPart);
  double sum = 0;
#pragma unroll 8
  for (int i = threadIdx.x; i < size; i += kThreads) {
    const double number = static_cast<double>(numbers[begin + i]);
    sum += number * number;
  }
  sum = sum_over_block(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    sum_parts(const double* parts, int64_t count, double* sum) {
  const double all = sum_of(parts, count);
  if (threadIdx.x == 0) *sum = all;
}

/// Every block finds the norm by itself: a few hundred numbers, against a launch of their own.
template <class T>
__global__ void __launch_bounds__(kThreads)
    clip(const double* squares, int64_t num_squares, double max_norm, double* norm,
         Buckets<T> buckets) {
  const double found = sqrt(sum_of(squares, num_squares));
  if (blockIdx.x == 0 && threadIdx.x == 0) *norm = found;
  const double factor = max_norm / (found + 1e-6);
  if (max_norm <= 0 || !isfinite(found) || factor >= 1) return;
  const T by = static_cast<T>(factor);
  int bucket = 0;
  while (bucket < buckets.count && static_cast<int>(blockIdx.x) >= buckets.first_block[bucket + 1])
    ++bucket;
  if (bucket == buckets.count) return;
  const int64_t begin = (blockIdx.x - buckets.first_block[bucket]) * kClippedByBlock;
  const int64_t rest = buckets.sizes[bucket] - begin;
  const int size = static_cast<int>(rest < kClippedByBlock ? rest : kClippedByBlock);
  T* numbers = buckets.numbers[bucket] + begin;
#pragma unroll 8
  for (int i = threadIdx.x; i < size; i += kThreads) numbers[i] *= by;
}

}  // namespace

template <class T>
void sum_squares(const T* numbers, int64_t count, double* parts, double* sum, cudaStream_t stream) {
  const int64_t num_parts = parts_of_squares(count);
  if (num_parts == 1) {
    square_parts<<<1, kThreads, 0, stream>>>(numbers, count, sum);
    return;
  }
  square_parts<<<static_cast<unsigned>(num_parts), kThreads, 0, stream>>>(numbers, count, parts);
  sum_parts<<<1, kThreads, 0, stream>>>(parts, num_parts, sum);
}

template <class T>
void clip_by_norm(const double* squares, int64_t num_squares, double max_norm, double* norm,
                  const Buckets<T>& buckets, cudaStream_t stream) {
  const int blocks = buckets.count == 0 ? 1 : buckets.first_block[buckets.count];
  clip<<<blocks == 0 ? 1 : blocks, kThreads, 0, stream>>>(squares, num_squares, max_norm, norm,
                                                          buckets);
}

template void sum_squares(const float*, int64_t, double*, double*, cudaStream_t);
template void sum_squares(const double*, int64_t, double*, double*, cudaStream_t);
template void clip_by_norm(const double*, int64_t, double, double*, const Buckets<float>&,
                           cudaStream_t);
template void clip_by_norm(const double*, int64_t, double, double*, const Buckets<double>&,
                           cudaStream_t);

}  // namespace tessera::cuda
