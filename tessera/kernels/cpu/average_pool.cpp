#include <algorithm>
#include <array>
#include <vector>

#include "tessera/kernels/cpu/pool_loops.h"

namespace tessera {
namespace {

/// What a window's sum is divided by: a product over the axes, or the override.
class Divisors {
 public:
  Divisors(const PoolPiece& piece, const PoolDivisor& divisor)
      : piece_(piece), override_(divisor.override_) {
    for (int axis = 0; axis < 3; ++axis)
      for (int64_t o = piece[axis].out.begin; o < piece[axis].out.end; ++o)
        counts_[axis].push_back(count(piece[axis], o, divisor.count_include_pad));
  }

  /// The divisors of the part's columns.
  template <class T>
  void write(const RowPart& part, T* divisors) const {
    const int64_t first = part.columns.begin - piece_[2].out.begin;
    const int64_t rows =
        counts_[0][part.d - piece_[0].out.begin] * counts_[1][part.h - piece_[1].out.begin];
    for (int64_t i = 0; i < part.columns.size(); ++i)
      divisors[i] = static_cast<T>(override_ > 0 ? override_ : rows * counts_[2][first + i]);
  }

 private:
  /// PyTorch counts padding, but not what ceil mode reads beyond it.
  static int64_t count(const PoolAxis& axis, int64_t output, bool include_padding) {
    if (!include_padding) return axis.taps_inside(output).size();
    const int64_t begin = axis.tap(output, 0);
    return std::min(begin + axis.kernel, axis.input_size + axis.padding) - begin;
  }

  const PoolPiece& piece_;
  int64_t override_;
  std::array<std::vector<int64_t>, 3> counts_;
};

template <int64_t kStride, class T>
void add_taps(const T* in, int64_t stride, int64_t n, T* sums) {
  if constexpr (kStride > 0) stride = kStride;
  for (int64_t i = 0; i < n; ++i) sums[i] += in[i * stride];
}

template <class T>
void average_forward(const PoolPiece& piece, const Divisors& divisors, const ImageView<const T>& x,
                     const ImageView<T>& y) {
  const int64_t stride = piece[2].stride;
  const auto add = stride == 1 ? add_taps<1, T> : stride == 2 ? add_taps<2, T> : add_taps<0, T>;
  for_row_parts(piece, y.num_planes(), [&](const RowPart& part) {
    T sums[RowPart::kColumns], divisor[RowPart::kColumns];
    std::fill_n(sums, part.columns.size(), T(0));
    const T* plane = x.plane(part.plane);
    for_taps(part, [&](int64_t, int64_t d, int64_t h, int64_t w, const Range& outputs) {
      add(plane + d * x.strides[2] + h * x.strides[3] + w, stride, outputs.size(),
          sums + (outputs.begin - part.columns.begin));
    });
    divisors.write(part, divisor);
    T* out = y.plane(part.plane) + part.offset(y.strides);
    for (int64_t i = 0; i < part.columns.size(); ++i) out[i] = sums[i] / divisor[i];
  });
}

template <class T>
void average_backward(const PoolPiece& piece, const Divisors& divisors,
                      const ImageView<const T>& grad_y, const ImageView<T>& grad_x) {
  const int64_t stride = piece[2].stride;
  for_zeroed_planes(grad_x, [&](int64_t plane) {
    for_row_parts_of_plane(piece, plane, [&](const RowPart& part) {
      const T* dy = grad_y.plane(plane) + part.offset(grad_y.strides);
      T shares[RowPart::kColumns], divisor[RowPart::kColumns];
      divisors.write(part, divisor);
      for (int64_t i = 0; i < part.columns.size(); ++i) shares[i] = dy[i] / divisor[i];
      for_taps(part, [&](int64_t, int64_t d, int64_t h, int64_t w, const Range& outputs) {
        T* dx = grad_x.plane(plane) + d * grad_x.strides[2] + h * grad_x.strides[3] + w;
        const T* share = shares + (outputs.begin - part.columns.begin);
        for (int64_t i = 0; i < outputs.size(); ++i) dx[i * stride] += share[i];
      });
    });
  });
}

}  // namespace

namespace cpu {

void pool_averages(const PoolPiece& piece, const PoolDivisor& divisor, const at::Tensor& x,
                   const at::Tensor& y) {
  const at::Tensor from = read_rows(x);
  const Divisors divisors(piece, divisor);
  write_rows(y, [&](const at::Tensor& to) {
    AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "pool_averages", [&] {
      average_forward(piece, divisors, ImageView<const scalar_t>(from), ImageView<scalar_t>(to));
    });
  });
}

void pool_averages_gradient(const PoolPiece& piece, const PoolDivisor& divisor,
                            const at::Tensor& grad_y, const at::Tensor& grad_x) {
  const at::Tensor from = read_rows(grad_y);
  const Divisors divisors(piece, divisor);
  write_rows(grad_x, [&](const at::Tensor& to) {
    AT_DISPATCH_FLOATING_TYPES(from.scalar_type(), "pool_averages", [&] {
      average_backward(piece, divisors, ImageView<const scalar_t>(from), ImageView<scalar_t>(to));
    });
  });
}

}  // namespace cpu

const AveragePoolKernels AveragePoolKernels::kCpu{
    .pool_averages = cpu::pool_averages, .pool_averages_gradient = cpu::pool_averages_gradient};

}  // namespace tessera
