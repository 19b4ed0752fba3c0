#include "tessera/kernels/dropout.h"

#include <ATen/Dispatch.h>

#include "tessera/kernels/cpu/rows.h"

namespace tessera {

namespace cpu {

void apply_dropout(const DropoutMask& mask, const Fate& kept, const Fate& dropped,
                   const at::Tensor& from, const at::Tensor& to) {
  const RandomKey key = mask.state.defined()
                            ? RandomKey::of_state(static_cast<uint64_t>(mask.state.item<int64_t>()))
                            : mask.key;
  AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "dropout", [&] {
    const scalar_t factors[] = {static_cast<scalar_t>(dropped.factor),
                                static_cast<scalar_t>(kept.factor)};
    const scalar_t offsets[] = {static_cast<scalar_t>(dropped.offset),
                                static_cast<scalar_t>(kept.offset)};
    const scalar_t* source = from.data_ptr<scalar_t>();
    scalar_t* target = to.data_ptr<scalar_t>();
    const int64_t row_size = from.sizes().back();
    const int64_t source_stride = from.strides().back(), target_stride = to.strides().back();
    parallel_rows(from.sizes(), [&](int64_t, const RowIndex& row) {
      const scalar_t* x = source + row_offset(row, from.strides());
      scalar_t* y = target + row_offset(row, to.strides());
      const int64_t row_index = mask.first_index + row_offset(row, mask.strides);
      for (int64_t i = 0; i < row_size; ++i) {
        const auto index = static_cast<uint64_t>(row_index + i * mask.strides.back());
        const bool stays = key.uniform(index) >= mask.probability;
        // An index instead of a branch, which would be mispredicted.
        y[i * target_stride] = x[i * source_stride] * factors[stays] + offsets[stays];
      }
    });
  });
}

}  // namespace cpu

const DropoutKernels DropoutKernels::kCpu{.apply_dropout = cpu::apply_dropout};

}  // namespace tessera
