#include "tessera/kernels/pick_labels.h"

#include "tessera/kernels/cpu/rows.h"

namespace tessera {

namespace cpu {

void pick_labels(const at::Tensor& from, const std::vector<std::vector<int64_t>>& places,
                 const at::Tensor& to) {
  const std::vector<int64_t>& columns = places.back();
  const int64_t from_step = from.strides().back(), to_step = to.strides().back();
  parallel_rows(to.sizes(), [&](int64_t, const RowIndex& row) {
    const int64_t* source = from.data_ptr<int64_t>();
    for (size_t axis = 0; axis + 1 < places.size(); ++axis)
      source += places[axis][row[axis]] * from.stride(static_cast<int64_t>(axis));
    int64_t* target = to.data_ptr<int64_t>() + row_offset(row, to.strides());
    for (size_t i = 0; i < columns.size(); ++i, target += to_step)
      *target = source[columns[i] * from_step];
  });
}

}  // namespace cpu

const LabelPickKernels LabelPickKernels::kCpu{.pick_labels = cpu::pick_labels};

}  // namespace tessera
