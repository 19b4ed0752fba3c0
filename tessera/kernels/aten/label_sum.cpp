#include "tessera/kernels/label_sum.h"

#include <limits>

namespace tessera {

namespace aten {

/// Of labels that are not legal, the largest is stored, or the smallest where none is above 0.
void sum_over_labels(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                     const std::vector<double>& weights, const at::Tensor& sum,
                     const at::Tensor& illegal) {
  if (labels.numel() == 0) {
    sum.zero_();
    return;
  }
  const at::Tensor is_legal = (labels >= 0).logical_and(labels < num_labels);
  const at::Tensor counts = is_legal.logical_and(labels != ignore_index);
  const at::Tensor odd = labels.masked_fill(is_legal.logical_or(labels == ignore_index), 0);
  const at::Tensor largest = odd.amax();
  const at::Tensor found = at::where(largest > 0, largest, odd.amin());
  illegal.copy_(at::where(found != 0, found, illegal));
  at::Tensor all;
  if (weights.empty()) {
    all = counts.sum();
  } else {
    const at::Tensor table = at::tensor(weights, at::kDouble).to(labels.device());
    const at::Tensor of_labels = table.index({labels.masked_fill(counts.logical_not(), 0)});
    all = of_labels.masked_fill(counts.logical_not(), 0).sum();
  }
  sum.copy_(all.to(at::kDouble).masked_fill(found != 0, std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace aten

const LabelSumKernels LabelSumKernels::kAten{.sum_over_labels = aten::sum_over_labels};

}  // namespace tessera
