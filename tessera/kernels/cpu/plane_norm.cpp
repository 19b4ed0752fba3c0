#include "tessera/kernels/cpu/plane_norm.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

const double* numbers_of_cells(const at::Tensor& table) {
  TESSERA_CHECK(table.is_contiguous(), "statistics have gaps");
  return table.data_ptr<double>();
}

}  // namespace

std::vector<double> numbers_of_channels(const at::Tensor& table, int64_t channels,
                                        double otherwise) {
  if (!table.defined()) return std::vector<double>(static_cast<size_t>(channels), otherwise);
  const at::Tensor numbers = table.to(at::kDouble).contiguous();
  return {numbers.data_ptr<double>(), numbers.data_ptr<double>() + channels};
}

PlaneNumbers::PlaneNumbers(const PlaneNorm& norm, int64_t channels)
    : cell(norm.mean, channels),
      mean(numbers_of_cells(norm.mean)),
      inverse_std(numbers_of_cells(norm.inverse_std)),
      weight(numbers_of_channels(norm.weight, channels, 1)),
      bias(numbers_of_channels(norm.bias, channels, 0)) {}

}  // namespace tessera
