#pragma once
// The numbers of a row of statistics (float64, contiguous, a few for each channel).

#include <ATen/ATen.h>

#include <span>

namespace tessera {

inline std::span<double> row_numbers(const at::Tensor& row) {
  return {row.data_ptr<double>(), static_cast<size_t>(row.numel())};
}

}  // namespace tessera
