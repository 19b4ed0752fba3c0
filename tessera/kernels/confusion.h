#pragma once
// The counting loops behind ConfusionCounts, on strided views and in parallel. Counts are whole
// numbers, so the order in which threads add theirs does not matter.

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct ConfusionKernels {
  /// Adds to `counts` (row-major, [truth][prediction]); contracts as in train/metrics.h.
  void (*count_logits)(const at::Tensor& logits, const at::Tensor& labels, int64_t ignore_index,
                       int64_t num_classes, std::vector<int64_t>& counts);
  void (*count_predictions)(const at::Tensor& predictions, const at::Tensor& labels,
                            int64_t ignore_index, int64_t num_classes,
                            std::vector<int64_t>& counts);

  static const ConfusionKernels kCpu;
  static const ConfusionKernels kAten;
};
inline constexpr Kernel<&ConfusionKernels::count_logits> count_logits;
inline constexpr Kernel<&ConfusionKernels::count_predictions> count_predictions;

}  // namespace tessera
