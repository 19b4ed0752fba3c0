#pragma once
// What losses count in their labels, in one walk that also looks for labels that are not legal.

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct LabelSum {
  double sum = 0;
  std::optional<int64_t> illegal = {};  // the first, if there is any; the sum is then of no use
};

struct LabelSumKernels {
  /// The sum of weights[label] over all labels but `ignore_index`; no weights: all 1. Legal labels
  /// are in [0, num_labels), and `ignore_index`. In an order that does not depend on the number of
  /// threads; `labels` is a view of any strides.
  LabelSum (*sum_over_labels)(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                              const std::vector<double>& weights);

  static const LabelSumKernels kCpu;
  static const LabelSumKernels kAten;
};
inline constexpr Kernel<&LabelSumKernels::sum_over_labels> sum_over_labels;

}  // namespace tessera
