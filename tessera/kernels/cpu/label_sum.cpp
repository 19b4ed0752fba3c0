#include "tessera/kernels/label_sum.h"

#include "tessera/kernels/cpu/rows.h"

namespace tessera {

namespace cpu {

LabelSum sum_over_labels(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                         const std::vector<double>& weights) {
  if (labels.numel() == 0) return {};
  const int64_t *data = labels.data_ptr<int64_t>(), stride = labels.strides().back();
  std::vector<LabelSum> rows(num_rows(labels.sizes()));
  parallel_rows(labels.sizes(), [&](int64_t row, const RowIndex& index) {
    const int64_t* label = data + row_offset(index, labels.strides());
    LabelSum found;
    for (int64_t p = 0; p < labels.sizes().back(); ++p, label += stride) {
      if (*label == ignore_index) continue;
      if (*label < 0 || *label >= num_labels) {
        found.illegal = *label;
        break;
      }
      found.sum += weights.empty() ? 1.0 : weights[*label];
    }
    rows[row] = found;
  });
  LabelSum all;
  for (const LabelSum& row : rows) {
    if (row.illegal) return row;
    all.sum += row.sum;
  }
  return all;
}

}  // namespace cpu

const LabelSumKernels LabelSumKernels::kCpu{.sum_over_labels = cpu::sum_over_labels};

}  // namespace tessera
