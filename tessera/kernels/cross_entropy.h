#pragma once
// Cross entropy of pixels, or of whole samples, with PyTorch's class weights, label smoothing and
// ignored label. Logits are read once in each direction and no map of probabilities is kept:
// backward takes softmax minus one-hot from the logits again.
//
// Example:
//   const CrossEntropyTerms terms{.ignore_index = 255};
//   const double sum = cross_entropy_sum(terms, logits, labels);
//   cross_entropy_gradient(terms, 1 / count, logits, labels, gradient);

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct CrossEntropyTerms {
  std::vector<double> class_weights = {};  // empty: all 1
  double label_smoothing = 0;
  int64_t ignore_index = -100;
};

struct CrossEntropyKernels {
  /// The sum of the terms of all pixels that count, a float64 scalar, in an order that does not
  /// depend on the number of threads. `logits` is batch x classes x space, `labels` batch x space:
  /// views of any strides, labels that count in [0, classes). On devices, others do not count: the
  /// host has not seen them yet (label_sum.h).
  at::Tensor (*cross_entropy_sum)(const CrossEntropyTerms& terms, const at::Tensor& logits,
                                  const at::Tensor& labels);
  /// Stores the gradient of factor * cross_entropy_sum(), zeros where a pixel does not count; the
  /// factor is a float64 scalar.
  void (*cross_entropy_gradient)(const CrossEntropyTerms& terms, const at::Tensor& factor,
                                 const at::Tensor& logits, const at::Tensor& labels,
                                 const at::Tensor& gradient);

  static const CrossEntropyKernels kCpu;
  static const CrossEntropyKernels kAten;
  static const CrossEntropyKernels* const kCuda;
};
inline constexpr Kernel<&CrossEntropyKernels::cross_entropy_sum> cross_entropy_sum;
inline constexpr Kernel<&CrossEntropyKernels::cross_entropy_gradient> cross_entropy_gradient;

}  // namespace tessera
