#include "tessera/kernels/linear.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "tessera/kernels/cpu/panels.h"
#include "tessera/kernels/cpu/thread_buffer.h"

namespace tessera {
namespace {

template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0, columns = 0, stride = 0;

  T* row(int64_t index) const { return data + index * stride; }
};

bool has_rows(const at::Tensor& matrix) { return matrix.size(1) <= 1 || matrix.stride(1) == 1; }

/// The matrix, or where its rows do not lie contiguously a copy.
at::Tensor read_matrix(const at::Tensor& matrix) {
  return has_rows(matrix) ? matrix : matrix.contiguous();
}

/// Calls write(matrix) with one whose rows lie contiguously.
template <class Write>
void write_matrix(const at::Tensor& matrix, const Write& write) {
  if (has_rows(matrix)) return write(matrix);
  const at::Tensor copy = matrix.contiguous();
  write(copy);
  matrix.copy_(copy);
}

template <class T>
Matrix<T> matrix_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<std::remove_const_t<T>>(), tensor.size(0), tensor.size(1),
          tensor.stride(0)};
}

/// Calls body(begin, end) for blocks of [0, size) in parallel.
template <class Body>
void in_blocks(int64_t size, int64_t block, const Body& body) {
  const int64_t blocks = (size + block - 1) / block;
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i * block, std::min((i + 1) * block, size));
  });
}

/// Dot products of some rows of the weight with all rows of x, over some features at a time, which
/// stay in the caches.
template <class T>
class ForwardBlock {
 public:
  ForwardBlock(const Matrix<const T>& x, const Matrix<const T>& weight, int64_t begin, int64_t end)
      : x_(x), weight_(weight), begin_(begin), end_(end) {}

  void run(const T* bias, const Matrix<T>& y) {
    T* sums = thread_buffer<T>((end_ - begin_) * x_.rows);
    std::fill_n(sums, (end_ - begin_) * x_.rows, T(0));
    const int64_t whole = x_.columns / kLanes<T> * kLanes<T>;
    for (int64_t first = 0; first < whole; first += kFeatures)
      add_dots_of(first, std::min(kFeatures, whole - first), sums);
    for (int64_t k = begin_; k < end_; ++k)
      for (int64_t n = 0; n < x_.rows; ++n) {
        T sum = sums[(k - begin_) * x_.rows + n] + (bias != nullptr ? bias[k] : T(0));
        for (int64_t c = whole; c < x_.columns; ++c) sum += x_.row(n)[c] * weight_.row(k)[c];
        y.row(n)[k] = sum;
      }
  }

 private:
  static constexpr int64_t kFeatures = 4096 / static_cast<int64_t>(sizeof(T));

  void add_dots_of(int64_t first, int64_t length, T* sums) const {
    for (int64_t k = begin_; k < end_; k += kDotRows)
      for (int64_t n = 0; n < x_.rows; n += kDotColumns)
        add_dot_products(static_cast<int>(std::min<int64_t>(kDotRows, end_ - k)),
                         static_cast<int>(std::min<int64_t>(kDotColumns, x_.rows - n)), length,
                         weight_.row(k) + first, weight_.stride, x_.row(n) + first, x_.stride,
                         sums + (k - begin_) * x_.rows + n, x_.rows);
  }

  const Matrix<const T>& x_;
  const Matrix<const T>& weight_;
  const int64_t begin_, end_;
};

/// to[i, c] += Σ over l of a[l * a_stride + i] b[l, c], for some columns; `rows` of `to` at most
/// kPanelRows.
template <class T>
void add_outer_products(int64_t rows, int64_t depth, const T* a, int64_t a_stride,
                        const Matrix<const T>& b, int64_t begin, int64_t end, const Matrix<T>& to) {
  constexpr int64_t kWidth = kPanelColumns<T>;
  int64_t column = begin;
  for (; column + kWidth <= end; column += kWidth)
    multiply_panels<T>(static_cast<int>(rows), depth, {a, a_stride, b.data + column, b.stride},
                       {to.data + column, to.stride, nullptr, to.data + column, to.stride});
  for (; column < end; ++column)
    for (int64_t i = 0; i < rows; ++i) {
      T sum = to.row(i)[column];
      for (int64_t l = 0; l < depth; ++l) sum += a[l * a_stride + i] * b.row(l)[column];
      to.row(i)[column] = sum;
    }
}

/// Some columns of dx: a few rows of the weight at a time serve all rows of dy.
template <class T>
void input_gradient_block(const Matrix<const T>& dy, const Matrix<const T>& weight, int64_t begin,
                          int64_t end, const Matrix<T>& dx) {
  constexpr int64_t kDepth = 32;
  T* turned = thread_buffer<T>(kDepth * kPanelRows);
  for (int64_t n = 0; n < dx.rows; ++n) std::fill(dx.row(n) + begin, dx.row(n) + end, T(0));
  for (int64_t k = 0; k < weight.rows; k += kDepth) {
    const int64_t depth = std::min(kDepth, weight.rows - k);
    for (int64_t n = 0; n < dx.rows; n += kPanelRows) {
      const int64_t rows = std::min<int64_t>(kPanelRows, dx.rows - n);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t l = 0; l < depth; ++l) turned[l * rows + i] = dy.row(n + i)[k + l];
      add_outer_products<T>(rows, depth, turned, rows,
                            {weight.row(k), depth, weight.columns, weight.stride}, begin, end,
                            {dx.row(n), rows, dx.columns, dx.stride});
    }
  }
}

}  // namespace

namespace cpu {

void linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const at::Tensor& y) {
  constexpr int64_t kOuts = 32;  // of a block: its sums stay in the first-level cache
  const at::Tensor rows = read_matrix(x), kernel = read_matrix(weight);
  write_matrix(y, [&](const at::Tensor& result) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_product", [&] {
      const auto from = matrix_of<const scalar_t>(rows), by = matrix_of<const scalar_t>(kernel);
      const auto to = matrix_of<scalar_t>(result);
      in_blocks(by.rows, kOuts, [&](int64_t begin, int64_t end) {
        ForwardBlock<scalar_t>(from, by, begin, end)
            .run(bias.defined() ? bias.data_ptr<scalar_t>() : nullptr, to);
      });
    });
  });
}

void linear_input_gradient(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& dx) {
  constexpr int64_t kFeatures = 512;
  const at::Tensor rows = read_matrix(dy), kernel = read_matrix(weight);
  write_matrix(dx, [&](const at::Tensor& result) {
    AT_DISPATCH_FLOATING_TYPES(dy.scalar_type(), "linear_input_gradient", [&] {
      const auto from = matrix_of<const scalar_t>(rows), by = matrix_of<const scalar_t>(kernel);
      const auto to = matrix_of<scalar_t>(result);
      in_blocks(by.columns, kFeatures, [&](int64_t begin, int64_t end) {
        input_gradient_block<scalar_t>(from, by, begin, end, to);
      });
    });
  });
}

void add_linear_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                const at::Tensor& weight_gradient) {
  const at::Tensor rows = read_matrix(x), grad_rows = read_matrix(dy);
  write_matrix(weight_gradient, [&](const at::Tensor& result) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_weight_gradient", [&] {
      const auto from = matrix_of<const scalar_t>(rows), by = matrix_of<const scalar_t>(grad_rows);
      const auto to = matrix_of<scalar_t>(result);
      in_blocks(to.rows, kPanelRows, [&](int64_t begin, int64_t end) {
        add_outer_products<scalar_t>(end - begin, from.rows, by.data + begin, by.stride, from, 0,
                                     from.columns,
                                     {to.row(begin), end - begin, to.columns, to.stride});
      });
    });
  });
}

}  // namespace cpu

const LinearKernels LinearKernels::kCpu{
    .linear_product = cpu::linear_product,
    .linear_input_gradient = cpu::linear_input_gradient,
    .add_linear_weight_gradient = cpu::add_linear_weight_gradient};

}  // namespace tessera
