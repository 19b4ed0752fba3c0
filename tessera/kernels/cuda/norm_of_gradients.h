#pragma once
// Launches behind the norm of all gradients; see optimise.h.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::cuda {

/// Parts of a sum, each of the same numbers on every device and however they are aligned.
inline constexpr int64_t kSquaresInPart = 8192;

/// Parts of `count` numbers, at least one.
constexpr int64_t parts_of_squares(int64_t count) {
  return count <= kSquaresInPart ? 1 : (count + kSquaresInPart - 1) / kSquaresInPart;
}

/// Stores the sum of squares. `parts` has room for parts_of_squares(count); for one part nothing is
/// written there.
template <class T>
void sum_squares(const T* numbers, int64_t count, double* parts, double* sum, cudaStream_t stream);

inline constexpr int kMostBuckets = 64;

/// Runs of numbers that are multiplied by one factor, and the blocks of threads that have a part of
/// them: bucket i those from first_block[i] on.
template <class T>
struct Buckets {
  int count = 0;
  T* numbers[kMostBuckets];
  int64_t sizes[kMostBuckets];
  int first_block[kMostBuckets + 1];
};

/// Stores the root of the sum of `squares` in `norm`, and multiplies the buckets by the factor that
/// clips it to max_norm. `squares` must not be written before the launch is over.
template <class T>
void clip_by_norm(const double* squares, int64_t num_squares, double max_norm, double* norm,
                  const Buckets<T>& buckets, cudaStream_t stream);

/// Numbers that a block of threads multiplies.
inline constexpr int64_t kClippedByBlock = 16384;

}  // namespace tessera::cuda
