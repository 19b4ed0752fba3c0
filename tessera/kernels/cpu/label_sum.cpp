#include "tessera/kernels/label_sum.h"

#include <limits>
#include <optional>

#include "tessera/kernels/cpu/rows.h"

namespace tessera {
namespace {

struct LabelsFound {
  double sum = 0;
  std::optional<int64_t> illegal = {};  // the first, if there is any; the sum is then of no use
};

LabelsFound find_labels(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                        const std::vector<double>& weights) {
  if (labels.numel() == 0) return {};
  const int64_t *data = labels.data_ptr<int64_t>(), stride = labels.strides().back();
  std::vector<LabelsFound> rows(num_rows(labels.sizes()));
  parallel_rows(labels.sizes(), [&](int64_t row, const RowIndex& index) {
    const int64_t* label = data + row_offset(index, labels.strides());
    LabelsFound found;
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
  LabelsFound all;
  for (const LabelsFound& row : rows) {
    if (row.illegal) return row;
    all.sum += row.sum;
  }
  return all;
}

}  // namespace

namespace cpu {

void sum_over_labels(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                     const std::vector<double>& weights, const at::Tensor& sum,
                     const at::Tensor& illegal) {
  const LabelsFound found = find_labels(labels, num_labels, ignore_index, weights);
  sum.fill_(found.illegal ? std::numeric_limits<double>::quiet_NaN() : found.sum);
  if (found.illegal) illegal.fill_(*found.illegal);
}

}  // namespace cpu

const LabelSumKernels LabelSumKernels::kCpu{.sum_over_labels = cpu::sum_over_labels};

}  // namespace tessera
