#include "tessera/kernels/cpu/norm_gradient.h"

#include <algorithm>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/cpu/lanes.h"
#include "tessera/kernels/cpu/plane_blocks.h"
#include "tessera/kernels/cpu/plane_norm.h"
#include "tessera/kernels/cpu/register_rows.h"

namespace tessera {
namespace {

struct GradientSums {
  double dy = 0;
  double dy_distance = 0;  // of dy * (x - mean)
};

/// What backward reads, row by row; without y, x stands for it and is not looked at.
template <class T>
struct BackwardImages {
  ImageView<const T> x, y, grad_y;

  /// The first of the images are x, y and grad_y.
  explicit BackwardImages(const std::vector<at::Tensor>& images)
      : x(images[0]), y(images[1]), grad_y(images[2]) {}
};

std::vector<at::Tensor> rows_to_read(const at::Tensor& x, const at::Tensor& y,
                                     const at::Tensor& grad_y) {
  const at::Tensor x_rows = read_rows(x);
  return {x_rows, y.defined() ? read_rows(y) : x_rows, read_rows(grad_y)};
}

template <NormActivation kActivation, PassedBy kPassedBy, class T>
GradientSums block_gradient_sums(const PlaneBlocks& blocks, int64_t block,
                                 const BackwardImages<T>& images, const PlaneNorm& norm) {
  const int64_t n = blocks.batch(block), c = blocks.channel(block);
  const Affine<Number<T>> affine(norm, norm.index(n, c));
  const double mean = norm.mean[norm.index(n, c)];
  Lanes sum, weighted;
  blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
    const T *x = images.x.row(n, c, d, h) + column, *y = images.y.row(n, c, d, h) + column;
    const T* grad_y = images.grad_y.row(n, c, d, h) + column;
    add_terms(
        columns,
        [&](int64_t i, auto count) {
          for (const T* from : {x, y, grad_y}) fetch_ahead(from + i);
          const Few<T> in = load_few(x + i, count);
          const Vector<double> dy = widened<T>(gradient_before<kActivation, kPassedBy>(
              affine, in, y + i, grad_y + i, [&](const T* from) { return load_few(from, count); }));
          return Terms<2>{dy, dy * (widened<T>(in) - mean)};
        },
        sum, weighted);
  });
  return {sum.sum(), weighted.sum()};
}

template <NormActivation kActivation, PassedBy kPassedBy, class T>
void sum_gradient_blocks(const std::vector<at::Tensor>& images, const PlaneNorm& norm,
                         std::span<double> sum_dy, std::span<double> sum_dy_xhat) {
  const BackwardImages<T> views(images);
  const PlaneBlocks blocks(images[0]);
  std::vector<GradientSums> parts(blocks.total());
  blocks.in_parallel([&](int64_t block) {
    parts[block] = block_gradient_sums<kActivation, kPassedBy, T>(blocks, block, views, norm);
  });
  for (int64_t block = 0; block < blocks.total(); ++block) {
    const size_t plane = norm.index(blocks.batch(block), blocks.channel(block));
    sum_dy[plane] += parts[block].dy;
    sum_dy_xhat[plane] += parts[block].dy_distance * norm.inverse_std[plane];
  }
}

/// dx = scale * dy + slope * (x - mean) + offset
template <class T>
struct InputGradient {
  T scale, mean, slope, offset;

  InputGradient(const PlaneNorm& norm, size_t plane, double mean_dxhat, double mean_dxhat_xhat)
      : scale(Affine<T>(norm, plane).scale),
        mean(static_cast<T>(norm.mean[plane])),
        slope(static_cast<T>(-norm.inverse_std[plane] * norm.inverse_std[plane] * mean_dxhat_xhat)),
        offset(static_cast<T>(-norm.inverse_std[plane] * mean_dxhat)) {}
  Vector<T> operator()(const Vector<T>& x, const Vector<T>& dy) const {
    return scale * dy + (slope * (x - mean) + offset);
  }
};

/// The images after those that are read are the gradients of x and, where there is a fifth, of what
/// was added.
template <NormActivation kActivation, PassedBy kPassedBy, class T>
void input_gradient_blocks(const std::vector<at::Tensor>& images, const PlaneNorm& norm,
                           std::span<const double> mean_dxhat,
                           std::span<const double> mean_dxhat_xhat) {
  const BackwardImages<T> read(images);
  const ImageView<T> grad_x(images[3]), grad_added(images.back());
  const bool adds = images.size() > 4;
  const PlaneBlocks blocks(images[0]);
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const size_t plane = norm.index(n, c);
    const Affine<Number<T>> affine(norm, plane);
    const InputGradient<Number<T>> gradient(norm, plane, mean_dxhat[plane], mean_dxhat_xhat[plane]);
    blocks.for_rows(block, [&](int64_t d, int64_t h, int64_t column, int64_t columns) {
      const T *x = read.x.row(n, c, d, h) + column, *y = read.y.row(n, c, d, h) + column;
      const T* grad_y = read.grad_y.row(n, c, d, h) + column;
      T* out = grad_x.row(n, c, d, h) + column;
      T* out_added = grad_added.row(n, c, d, h) + column;
      for_registers<T>(columns, [&](int64_t i, auto count) {
        for (const T* from : {x, y, grad_y}) fetch_ahead(from + i);
        const Vector<T> in = load_part(x + i, count);
        const Vector<T> dy = gradient_before<kActivation, kPassedBy>(
            affine, in, y + i, grad_y + i, [&](const T* from) { return load_part(from, count); });
        if (adds) store_part(out_added + i, dy, count);
        store_part(out + i, gradient(in, dy), count);
      });
    });
  });
}

}  // namespace

namespace cpu {

void plane_gradient_sums(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                         const PlaneNorm& norm, std::span<double> sum_dy,
                         std::span<double> sum_dy_xhat) {
  std::fill(sum_dy.begin(), sum_dy.end(), 0.0);
  std::fill(sum_dy_xhat.begin(), sum_dy_xhat.end(), 0.0);
  const std::vector<at::Tensor> images = join_rows(rows_to_read(x, y, grad_y));
  dispatch_backward(
      x, y, norm.activation, [&]<NormActivation kActivation, PassedBy kPassedBy, class T>() {
        sum_gradient_blocks<kActivation, kPassedBy, T>(images, norm, sum_dy, sum_dy_xhat);
      });
}

void normalise_gradient(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                        const PlaneNorm& norm, std::span<const double> mean_dxhat,
                        std::span<const double> mean_dxhat_xhat, const at::Tensor& grad_x,
                        const at::Tensor& grad_added) {
  const auto write = [&](std::vector<at::Tensor> images) {
    images = join_rows(std::move(images));
    dispatch_backward(x, y, norm.activation,
                      [&]<NormActivation kActivation, PassedBy kPassedBy, class T>() {
                        input_gradient_blocks<kActivation, kPassedBy, T>(images, norm, mean_dxhat,
                                                                         mean_dxhat_xhat);
                      });
  };
  write_rows(grad_x, [&](const at::Tensor& image) {
    std::vector<at::Tensor> images = rows_to_read(x, y, grad_y);
    images.push_back(image);
    if (!grad_added.defined()) return write(std::move(images));
    write_rows(grad_added, [&](const at::Tensor& added) {
      images.push_back(added);
      write(std::move(images));
    });
  });
}

}  // namespace cpu
}  // namespace tessera
