#pragma once
// Sums over the threads of a block, always in the same order: the bits do not depend on which
// thread comes first. `Merge` says what the sum of two parts is.

#include <cuda_runtime.h>

#include <cstdint>

#include "tessera/kernels/cuda/norm_launch.h"

namespace tessera::cuda {

/// Of numbers: count, mean and squared distances from the mean (Chan, Golub and LeVeque 1979).
struct MergeMoments {
  static __device__ void merge(int64_t& count, PairOfSums& all, int64_t other_count,
                               const PairOfSums& other) {
    if (other_count == 0) return;
    const double share =
        static_cast<double>(other_count) / static_cast<double>(count + other_count);
    const double apart = other.first - all.first;
    all.first += apart * share;
    all.second += other.second + apart * apart * (static_cast<double>(count) * share);
    count += other_count;
  }
};

struct MergeSums {
  static __device__ void merge(int64_t& count, PairOfSums& all, int64_t other_count,
                               const PairOfSums& other) {
    all.first += other.first;
    all.second += other.second;
    count += other_count;
  }
};

/// Threads are numbered lines x columns; after this those of line 0 have the sum over the lines of
/// their columns. Called by all threads of the block, of which there are at most kMostThreads.
template <class Merge, int kWidth, int kMostThreads>
__device__ void merge_lines(int lines, int columns, int64_t& count, PairOfSums (&parts)[kWidth]) {
  __shared__ double first[kWidth][kMostThreads], second[kWidth][kMostThreads];
  __shared__ int64_t counts[kMostThreads];
  const int thread = static_cast<int>(threadIdx.x), line = thread / columns;
  int half = 1;
  while (half < lines) half *= 2;
  for (; half >= 1; half /= 2) {
    if (line >= half && line < 2 * half) {
      counts[thread] = count;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        first[i][thread] = parts[i].first;
        second[i][thread] = parts[i].second;
      }
    }
    __syncthreads();
    if (line < half && line + half < lines) {
      const int other = thread + half * columns;
      const int64_t count_before = count;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        count = count_before;
        Merge::merge(count, parts[i], counts[other], {first[i][other], second[i][other]});
      }
    }
  }
}

/// What the thread has found goes to its channels' place among the parts.
template <class Merge, int kWidth>
__device__ void write_parts(const ImageTiles& tiles, const TilePart& part, int64_t count,
                            PairOfSums (&sums)[kWidth], PairOfSums* parts) {
  merge_lines<Merge, kWidth, kThreads>(tiles.pixel_threads, tiles.channel_threads, count, sums);
  if (part.pixel_thread != 0 || part.is_idle) return;
#pragma unroll
  for (int i = 0; i < kWidth; ++i)
    parts[(part.row * tiles.channels + part.channel + i) * tiles.pixel_tiles + part.tile] = sums[i];
}

inline constexpr int kMergingThreads = 128;

/// The sum of the parts of some neighbouring channels of a row, in thread 0.
template <class Merge>
__device__ PairOfSums merge_channels(const ImageTiles& tiles, const PairOfSums* parts, int64_t row,
                                     int64_t channel, int64_t channels, int64_t& count) {
  const PairOfSums* first = parts + (row * tiles.channels + channel) * tiles.pixel_tiles;
  const int64_t last_pixels = tiles.pixels.count - (tiles.pixel_tiles - 1) * tiles.tile_pixels;
  PairOfSums sum[1] = {{0, 0}};
  count = 0;
  int64_t tile = threadIdx.x % tiles.pixel_tiles;
  const int64_t step = kMergingThreads % tiles.pixel_tiles;
  for (int64_t i = threadIdx.x; i < channels * tiles.pixel_tiles; i += kMergingThreads) {
    Merge::merge(count, sum[0], tile + 1 == tiles.pixel_tiles ? last_pixels : tiles.tile_pixels,
                 first[i]);
    tile += step;
    if (tile >= tiles.pixel_tiles) tile -= tiles.pixel_tiles;
  }
  merge_lines<Merge, 1, kMergingThreads>(kMergingThreads, 1, count, sum);
  return sum[0];
}

}  // namespace tessera::cuda
