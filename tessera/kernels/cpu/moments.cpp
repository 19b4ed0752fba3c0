#include "tessera/kernels/cpu/moments.h"

namespace tessera {

void Moments::merge(const Moments& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;  // its bits; the formula would lose them where squares overflow
    return;
  }
  const double total = count + other.count;
  const double distance = other.mean - mean;
  mean += distance * (other.count / total);
  m2 += other.m2 + distance * distance * (count * (other.count / total));
  count = total;
}

namespace {

std::vector<Moments> read_moments(const at::Tensor& row) {
  const double* numbers = row.data_ptr<double>();
  std::vector<Moments> moments(row.numel() / kNumbersPerCell);
  for (Moments& cell : moments) {
    cell = {numbers[0], numbers[1], numbers[2]};
    numbers += kNumbersPerCell;
  }
  return moments;
}

}  // namespace

void write_moments(const std::vector<Moments>& moments, const at::Tensor& to) {
  if (!to.is_contiguous()) {
    const at::Tensor dense = at::empty(to.sizes(), to.options());
    write_moments(moments, dense);
    to.copy_(dense);
    return;
  }
  double* numbers = to.data_ptr<double>();
  for (const Moments& cell : moments) {
    *numbers++ = cell.count;
    *numbers++ = cell.mean;
    *numbers++ = cell.m2;
  }
}

namespace cpu {

void combine_moments(const std::vector<at::Tensor>& rows, const at::Tensor& combined) {
  std::vector<Moments> moments(combined.numel() / kNumbersPerCell);
  for (const at::Tensor& row : rows) {
    const std::vector<Moments> others = read_moments(row);
    for (size_t cell = 0; cell < moments.size(); ++cell) moments[cell].merge(others[cell]);
  }
  write_moments(moments, combined);
}

}  // namespace cpu

const MomentKernels MomentKernels::kCpu{.combine_moments = cpu::combine_moments};

}  // namespace tessera
