#include "tessera/kernels/cpu/norm_gradient.h"

#include "tessera/base/error.h"

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
                                 const BackwardImages<T>& images, const PlaneNumbers& norm) {
  const int64_t n = blocks.batch(block), c = blocks.channel(block);
  const Affine<Number<T>> affine(norm, n, c);
  const double mean = norm.mean[norm.cell(n, c)];
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
void sum_gradient_blocks(const std::vector<at::Tensor>& images, const PlaneNumbers& norm,
                         const PlaneIndex& plane_of, double* sum_dy, double* sum_dy_xhat) {
  const BackwardImages<T> views(images);
  const PlaneBlocks blocks(images[0]);
  std::vector<GradientSums> parts(blocks.total());
  blocks.in_parallel([&](int64_t block) {
    parts[block] = block_gradient_sums<kActivation, kPassedBy, T>(blocks, block, views, norm);
  });
  for (int64_t block = 0; block < blocks.total(); ++block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const size_t plane = plane_of(n, c);
    sum_dy[plane] += parts[block].dy;
    sum_dy_xhat[plane] += parts[block].dy_distance * norm.inverse_std[norm.cell(n, c)];
  }
}

/// Of the cells; null where they are zero.
struct GradientMeans {
  const double *dxhat = nullptr, *dxhat_xhat = nullptr;

  GradientMeans(const at::Tensor& mean_dxhat, const at::Tensor& mean_dxhat_xhat) {
    if (!mean_dxhat.defined()) return;
    TESSERA_CHECK(mean_dxhat.is_contiguous() && mean_dxhat_xhat.is_contiguous(), "means have gaps");
    dxhat = mean_dxhat.data_ptr<double>();
    dxhat_xhat = mean_dxhat_xhat.data_ptr<double>();
  }
};

/// dx = scale * dy + slope * (x - mean) + offset
template <class T>
struct InputGradient {
  T scale, mean, slope = 0, offset = 0;

  InputGradient(const PlaneNumbers& norm, const GradientMeans& means, int64_t n, int64_t c)
      : scale(Affine<T>(norm, n, c).scale), mean(static_cast<T>(norm.mean[norm.cell(n, c)])) {
    if (means.dxhat == nullptr) return;
    const size_t cell = norm.cell(n, c);
    const double inverse_std = norm.inverse_std[cell];
    slope = static_cast<T>(-inverse_std * inverse_std * means.dxhat_xhat[cell]);
    offset = static_cast<T>(-inverse_std * means.dxhat[cell]);
  }
  Vector<T> operator()(const Vector<T>& x, const Vector<T>& dy) const {
    return scale * dy + (slope * (x - mean) + offset);
  }
};

/// The images after those that are read are the gradients of x and, where there is a fifth, of what
/// was added.
template <NormActivation kActivation, PassedBy kPassedBy, class T>
void input_gradient_blocks(const std::vector<at::Tensor>& images, const PlaneNumbers& norm,
                           const GradientMeans& means) {
  const BackwardImages<T> read(images);
  const ImageView<T> grad_x(images[3]), grad_added(images.back());
  const bool adds = images.size() > 4;
  const PlaneBlocks blocks(images[0]);
  blocks.in_parallel([&](int64_t block) {
    const int64_t n = blocks.batch(block), c = blocks.channel(block);
    const Affine<Number<T>> affine(norm, n, c);
    const InputGradient<Number<T>> gradient(norm, means, n, c);
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
                         const PlaneNorm& norm, const at::Tensor& sum_dy,
                         const at::Tensor& sum_dy_xhat) {
  TESSERA_CHECK(sum_dy.is_contiguous() && sum_dy_xhat.is_contiguous(), "sums have gaps");
  sum_dy.zero_();
  sum_dy_xhat.zero_();
  const std::vector<at::Tensor> images = join_rows(rows_to_read(x, y, grad_y));
  const PlaneNumbers numbers(norm, x.size(1));
  dispatch_backward(x, y, norm.activation,
                    [&]<NormActivation kActivation, PassedBy kPassedBy, class T>() {
                      sum_gradient_blocks<kActivation, kPassedBy, T>(
                          images, numbers, PlaneIndex(sum_dy, x.size(1)), sum_dy.data_ptr<double>(),
                          sum_dy_xhat.data_ptr<double>());
                    });
}

void normalise_gradient(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                        const PlaneNorm& norm, const at::Tensor& mean_dxhat,
                        const at::Tensor& mean_dxhat_xhat, const at::Tensor& grad_x,
                        const at::Tensor& grad_added) {
  const PlaneNumbers numbers(norm, x.size(1));
  const GradientMeans means(mean_dxhat, mean_dxhat_xhat);
  const auto write = [&](std::vector<at::Tensor> images) {
    images = join_rows(std::move(images));
    dispatch_backward(x, y, norm.activation,
                      [&]<NormActivation kActivation, PassedBy kPassedBy, class T>() {
                        input_gradient_blocks<kActivation, kPassedBy, T>(images, numbers, means);
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
