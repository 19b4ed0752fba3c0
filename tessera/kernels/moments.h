#pragma once
// Statistics as they travel: a row of float64 numbers, three for each cell. A cell is what shares
// mean and variance, for example a channel. Rows are tensors on the device of what they are of, so
// that nothing has to wait for them.

#include <ATen/ATen.h>

#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

/// Count, mean and sum of squared distances from the mean.
inline constexpr int64_t kNumbersPerCell = 3;

/// A number of each cell of moments whose last axis has the three.
inline at::Tensor counts_in(const at::Tensor& moments) { return moments.select(-1, 0); }
inline at::Tensor means_in(const at::Tensor& moments) { return moments.select(-1, 1); }
inline at::Tensor squares_in(const at::Tensor& moments) { return moments.select(-1, 2); }

/// A row as cells x 3.
inline at::Tensor cells_of_row(const at::Tensor& row) { return row.view({-1, kNumbersPerCell}); }

struct MomentKernels {
  /// Merges each cell's moments of all rows, in their order. `combined` is none of the rows.
  void (*combine_moments)(const std::vector<at::Tensor>& rows, const at::Tensor& combined);

  static const MomentKernels kCpu;
  static const MomentKernels kAten;
};
inline constexpr Kernel<&MomentKernels::combine_moments> combine_moments;

}  // namespace tessera
