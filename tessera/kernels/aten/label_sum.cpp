#include "tessera/kernels/label_sum.h"

namespace tessera {

namespace aten {

/// The host waits for both numbers: a label that is not legal ends the run at once.
LabelSum sum_over_labels(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                         const std::vector<double>& weights) {
  if (labels.numel() == 0) return {};
  const at::Tensor counts = labels != ignore_index;
  const at::Tensor illegal =
      labels.masked_select(counts.logical_and((labels < 0).logical_or(labels >= num_labels)));
  if (illegal.numel() > 0) return {0, illegal[0].item<int64_t>()};
  if (weights.empty()) return {static_cast<double>(counts.sum().item<int64_t>())};
  const at::Tensor table = at::tensor(weights, at::kDouble).to(labels.device());
  const at::Tensor of_labels = table.index({labels.masked_fill(~counts, 0)});
  return {of_labels.masked_fill(~counts, 0).sum().item<double>()};
}

}  // namespace aten

const LabelSumKernels LabelSumKernels::kAten{.sum_over_labels = aten::sum_over_labels};

}  // namespace tessera
