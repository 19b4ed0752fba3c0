#include "tessera/kernels/norm.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/cpu/lanes.h"
#include "tessera/kernels/cpu/plane_blocks.h"

namespace tessera {
namespace {

using Activation = NormActivation;

template <class T>
Moments block_moments(const PlaneBlocks& blocks, int64_t block, const ImageView<const T>& x) {
  const int64_t n = blocks.batch(block), c = blocks.channel(block);
  Moments moments;
  Lanes sum;
  blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
    const T* row = x.row(n, c, d, h) + column;
    accumulate(sum, columns, [row](int64_t i) { return static_cast<double>(row[i]); });
    moments.count += static_cast<double>(columns);
  });
  const double mean = moments.mean = sum.sum() / moments.count;
  Lanes squares;
  blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
    const T* row = x.row(n, c, d, h) + column;
    accumulate(squares, columns, [row, mean](int64_t i) {
      const double distance = row[i] - mean;
      return distance * distance;
    });
  });
  moments.m2 = squares.sum();
  return moments;
}

/// The numbers that the loops use for one plane, rounded to the tensors' type once.
template <class T>
struct Affine {
  T scale, shift;

  Affine(const PlaneNorm& norm, size_t plane) {
    const double exact_scale = norm.weight[plane] * norm.inverse_std[plane];
    scale = static_cast<T>(exact_scale);
    shift = static_cast<T>(norm.bias[plane] - norm.mean[plane] * exact_scale);
  }

  /// The value before the activation. Backward decides by it which elements the ReLU let through,
  /// so it must not be left to the compiler whether to contract it.
  T operator()(T x) const {
#ifdef FP_FAST_FMA
    return std::fma(x, scale, shift);
#else
    return x * scale + shift;
#endif
  }
};

template <Activation kActivation, class T>
inline T activate(T value) {
  if constexpr (kActivation == Activation::kNone) return value;
  return value <= 0 ? T(0) : value;  // NaN passes, as in PyTorch
}

/// The gradient before the activation, from the one after it.
template <Activation kActivation, class T>
inline T gradient_before(const Affine<T>& affine, T x, T grad_y) {
  if constexpr (kActivation == Activation::kNone) return grad_y;
  return affine(x) <= 0 ? T(0) : grad_y;
}

template <Activation kActivation, class T>
void normalise_blocks(const at::Tensor& x_image, const PlaneNorm& norm, const at::Tensor& y_image) {
  const std::vector<at::Tensor> images = join_rows({x_image, y_image});
  const ImageView<const T> x(images[0]);
  const ImageView<T> y(images[1]);
  const PlaneBlocks blocks(images[0]);
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const Affine<T> affine(norm, norm.index(n, c));
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T* in = x.row(n, c, d, h) + column;
      T* out = y.row(n, c, d, h) + column;
#pragma GCC ivdep
      for (int64_t i = 0; i < columns; ++i) out[i] = activate<kActivation>(affine(in[i]));
    });
  });
}

struct GradientSums {
  double dy = 0;
  double dy_distance = 0;  // of dy * (x - mean)
};

template <Activation kActivation, class T>
GradientSums block_gradient_sums(const PlaneBlocks& blocks, int64_t block,
                                 const ImageView<const T>& x, const ImageView<const T>& grad_y,
                                 const PlaneNorm& norm) {
  const int64_t n = blocks.batch(block), c = blocks.channel(block);
  const Affine<T> affine(norm, norm.index(n, c));
  const double mean = norm.mean[norm.index(n, c)];
  // Masked into a buffer first: within the sums the compiler would branch on every element.
  T dy[PlaneBlocks::kBlockElements];
  Lanes sum, weighted;
  blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
    const T* in = x.row(n, c, d, h) + column;
    const T* grad = grad_y.row(n, c, d, h) + column;
    for (int64_t i = 0; i < columns; ++i)
      dy[i] = gradient_before<kActivation>(affine, in[i], grad[i]);
    accumulate(sum, columns, [&](int64_t i) { return static_cast<double>(dy[i]); });
    accumulate(weighted, columns, [&](int64_t i) { return dy[i] * (in[i] - mean); });
  });
  return {sum.sum(), weighted.sum()};
}

template <Activation kActivation, class T>
void sum_gradient_blocks(const at::Tensor& x_image, const at::Tensor& grad_y_image,
                         const PlaneNorm& norm, std::span<double> sum_dy,
                         std::span<double> sum_dy_xhat) {
  const std::vector<at::Tensor> images = join_rows({x_image, grad_y_image});
  const ImageView<const T> x(images[0]), grad_y(images[1]);
  const PlaneBlocks blocks(images[0]);
  std::vector<GradientSums> parts(blocks.total());
  blocks.in_parallel([&](int64_t block) {
    parts[block] = block_gradient_sums<kActivation, T>(blocks, block, x, grad_y, norm);
  });
  for (int64_t block = 0; block < blocks.total(); ++block) {
    const size_t plane = norm.index(blocks.batch(block), blocks.channel(block));
    sum_dy[plane] += parts[block].dy;
    sum_dy_xhat[plane] += parts[block].dy_distance * norm.inverse_std[plane];
  }
}

template <Activation kActivation, class T>
void normalise_gradient_blocks(const at::Tensor& x_image, const at::Tensor& grad_y_image,
                               const PlaneNorm& norm, std::span<const double> mean_dxhat,
                               std::span<const double> mean_dxhat_xhat,
                               const at::Tensor& grad_x_image) {
  const std::vector<at::Tensor> images = join_rows({x_image, grad_y_image, grad_x_image});
  const ImageView<const T> x(images[0]), grad_y(images[1]);
  const ImageView<T> grad_x(images[2]);
  const PlaneBlocks blocks(images[0]);
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const size_t plane = norm.index(n, c);
    const Affine<T> affine(norm, plane);
    const double inverse_std = norm.inverse_std[plane];
    const T mean = static_cast<T>(norm.mean[plane]);
    const T slope = static_cast<T>(-inverse_std * inverse_std * mean_dxhat_xhat[plane]);
    const T offset = static_cast<T>(-inverse_std * mean_dxhat[plane]);
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T* in = x.row(n, c, d, h) + column;
      const T* grad = grad_y.row(n, c, d, h) + column;
      T* out = grad_x.row(n, c, d, h) + column;
#pragma GCC ivdep
      for (int64_t i = 0; i < columns; ++i) {
        const T dy = gradient_before<kActivation>(affine, in[i], grad[i]);
        out[i] = affine.scale * dy + (slope * (in[i] - mean) + offset);
      }
    });
  });
}

/// Calls run.template operator()<activation, scalar type>().
template <class Run>
void dispatch(const at::Tensor& x, Activation activation, Run&& run) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise", [&] {
    if (activation == Activation::kRelu)
      run.template operator()<Activation::kRelu, scalar_t>();
    else
      run.template operator()<Activation::kNone, scalar_t>();
  });
}

}  // namespace

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

std::vector<Moments> read_moments(const at::Tensor& row) {
  const double* numbers = row.data_ptr<double>();
  std::vector<Moments> moments(row.numel() / kNumbersPerCell);
  for (Moments& cell : moments) {
    cell = {numbers[0], numbers[1], numbers[2]};
    numbers += kNumbersPerCell;
  }
  return moments;
}

void write_moments(std::span<const Moments> moments, const at::Tensor& row) {
  double* numbers = row.data_ptr<double>();
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

void plane_moments(const at::Tensor& x, PlaneIndex index, std::span<Moments> moments) {
  std::fill(moments.begin(), moments.end(), Moments{});
  const at::Tensor image = join_rows({read_rows(x)})[0];
  const PlaneBlocks blocks(image);
  std::vector<Moments> parts(blocks.total());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "normalise", [&] {
    const ImageView<const scalar_t> view(image);
    blocks.in_parallel(
        [&](int64_t block) { parts[block] = block_moments<scalar_t>(blocks, block, view); });
  });
  for (int64_t block = 0; block < blocks.total(); ++block)
    moments[index(blocks.batch(block), blocks.channel(block))].merge(parts[block]);
}

void normalise(const at::Tensor& x, const PlaneNorm& norm, const at::Tensor& y) {
  write_rows(y, [&](const at::Tensor& image) {
    dispatch(x, norm.activation, [&]<Activation kActivation, class T>() {
      normalise_blocks<kActivation, T>(read_rows(x), norm, image);
    });
  });
}

void plane_gradient_sums(const at::Tensor& x, const at::Tensor& grad_y, const PlaneNorm& norm,
                         std::span<double> sum_dy, std::span<double> sum_dy_xhat) {
  std::fill(sum_dy.begin(), sum_dy.end(), 0.0);
  std::fill(sum_dy_xhat.begin(), sum_dy_xhat.end(), 0.0);
  dispatch(x, norm.activation, [&]<Activation kActivation, class T>() {
    sum_gradient_blocks<kActivation, T>(read_rows(x), read_rows(grad_y), norm, sum_dy, sum_dy_xhat);
  });
}

void normalise_gradient(const at::Tensor& x, const at::Tensor& grad_y, const PlaneNorm& norm,
                        std::span<const double> mean_dxhat, std::span<const double> mean_dxhat_xhat,
                        const at::Tensor& grad_x) {
  write_rows(grad_x, [&](const at::Tensor& image) {
    dispatch(x, norm.activation, [&]<Activation kActivation, class T>() {
      normalise_gradient_blocks<kActivation, T>(read_rows(x), read_rows(grad_y), norm, mean_dxhat,
                                                mean_dxhat_xhat, image);
    });
  });
}

}  // namespace cpu

const NormKernels NormKernels::kCpu{.combine_moments = cpu::combine_moments,
                                    .plane_moments = cpu::plane_moments,
                                    .normalise = cpu::normalise,
                                    .plane_gradient_sums = cpu::plane_gradient_sums,
                                    .normalise_gradient = cpu::normalise_gradient};

}  // namespace tessera
