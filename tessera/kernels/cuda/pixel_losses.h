#pragma once
// Launches behind cross_entropy.h and label_sum.h. Sums are made of parts of kPixelsOfPart pixels,
// in an order that does not depend on the GPU.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "tessera/kernels/cuda/image_tiles.h"
#include "tessera/kernels/cuda/strided_walk.h"

namespace tessera::cuda {

inline constexpr int kMostClasses = 64, kMostWideClasses = 24;  // wide: of float64
inline constexpr int64_t kPixelsOfPart = 2048;

constexpr int64_t parts_of_pixels(int64_t count) {
  return (count + kPixelsOfPart - 1) / kPixelsOfPart;
}

/// Factors of classes; not weighted: all are 1.
struct ClassWeights {
  bool are_given = false;
  double of_class[kMostClasses];
};

struct CrossEntropyCall {
  NumberType type = NumberType::kFloat32;
  StridedWalk pixels;  // views: labels, logits, gradient
  const int64_t* labels = nullptr;
  const void* logits = nullptr;
  void* gradient = nullptr;
  int64_t logit_stride = 0, gradient_stride = 0;  // from class to class
  int classes = 0;
  bool is_packed = false;  // the classes of a pixel lie together, at a multiple of their bytes up
                           // to 16, and are 2, 4, 8 or 16
  int64_t ignore_index = 0;
  double hard = 1, soft = 0, total_weight = 0;
  ClassWeights weights;
};

/// Stores the sum; there are pixels, and kMostClasses or kMostWideClasses at the most. `parts` has
/// room for parts_of_pixels().
cudaError_t sum_cross_entropy(const CrossEntropyCall& call, double* parts, double* sum,
                              cudaStream_t stream);
/// There are pixels.
cudaError_t find_cross_entropy_gradient(const CrossEntropyCall& call, const double* factor,
                                        cudaStream_t stream);

struct LabelSumCall {
  StridedWalk pixels;  // views: labels
  const int64_t* labels = nullptr;
  int64_t num_labels = 0, ignore_index = 0;
  ClassWeights weights;
};

/// Stores the sum, and an illegal label if there is any; there are labels. Both kinds of
/// parts have room for parts_of_pixels().
cudaError_t sum_labels(const LabelSumCall& call, double* parts, int64_t* illegal_parts, double* sum,
                       int64_t* illegal, cudaStream_t stream);

}  // namespace tessera::cuda
