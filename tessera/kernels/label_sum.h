#pragma once
// What losses count in their labels, in one walk that also looks for labels that are not legal.
// Numbers stay where the labels lie, so that nobody waits for a device in the middle of a step.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct LabelSumKernels {
  /// Stores in `sum`, a float64 scalar, the sum of weights[label] over all labels but
  /// `ignore_index`; no weights: all 1. In an order that does not depend on the number of threads;
  /// `labels` is a view of any strides. Legal labels are in [0, num_labels), and `ignore_index`.
  /// Where others are found, one of them is stored in `illegal`, an int64 scalar, and the sum is
  /// NaN; else `illegal` is left alone. 0 is always legal, so there it can say that none was found.
  void (*sum_over_labels)(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                          const std::vector<double>& weights, const at::Tensor& sum,
                          const at::Tensor& illegal);

  static const LabelSumKernels kCpu;
  static const LabelSumKernels kAten;
  static const LabelSumKernels* const kCuda;
};
inline constexpr Kernel<&LabelSumKernels::sum_over_labels> sum_over_labels;

}  // namespace tessera
