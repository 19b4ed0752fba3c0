#include "tessera/kernels/layer_norm.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/cpu/lanes.h"
#include "tessera/kernels/cpu/plane_blocks.h"
#include "tessera/kernels/cpu/plane_norm.h"

namespace tessera {
namespace {

constexpr int64_t kTile = 128;
constexpr int64_t kParallelElements = 32768;

/// Vectors are a row of pixels: without this each of them would be a tile.
at::Tensor as_image(const at::Tensor& view) {
  return view.dim() == 2 ? view.t().unsqueeze(0) : view;
}

/// Neighbouring pixels of one row. Channel c of pixel p is at c * channel_stride + p.
template <class T>
struct Tile {
  T* data;
  int64_t channel_stride;
  T* channel(int64_t c) const { return data + c * channel_stride; }

  /// Asks for a channel that comes soon. Hundreds of short runs are too many for the processor to
  /// see their pattern; without this, backward took up to five times as long.
  void prefetch_after(int64_t c, int64_t pixels) const {
    constexpr int64_t kAhead = 4, kLineElements = 64 / static_cast<int64_t>(sizeof(T));
    for (int64_t p = 0; p < pixels; p += kLineElements) __builtin_prefetch(channel(c + kAhead) + p);
  }
};

/// Cuts the rows of an image into tiles.
class PixelTiles {
 public:
  explicit PixelTiles(const at::Tensor& image)
      : channels_(image.size(1)),
        depth_(image.size(2)),
        height_(image.size(3)),
        width_(image.size(4)),
        across_((width_ + kTile - 1) / kTile),
        total_(image.size(0) * depth_ * height_ * across_) {}

  int64_t channels() const { return channels_; }
  int64_t total() const { return total_; }
  int64_t num_pixels(int64_t tile) const { return std::min(kTile, width_ - column(tile)); }

  template <class T>
  Tile<T> of(const ImageView<T>& view, int64_t tile) const {
    const int64_t row = tile / across_, slice = row / height_;
    T* first = view.row(slice / depth_, 0, slice % depth_, row % height_);
    return {first + column(tile), view.strides[1]};
  }

  template <class Visit>
  void in_parallel(const Visit& visit) const {
    const int64_t grain =
        std::max<int64_t>(1, kParallelElements / (channels_ * std::min(kTile, width_)));
    at::parallel_for(0, total_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t tile = begin; tile < end; ++tile) visit(tile);
    });
  }

 private:
  int64_t column(int64_t tile) const { return tile % across_ * kTile; }

  int64_t channels_, depth_, height_, width_, across_, total_;
};

/// Statistics of the pixels of a tile.
struct TileStatistics {
  double mean[kTile] = {};
  double inverse_std[kTile] = {};

  template <class T>
  TileStatistics(const Tile<const T>& x, int64_t channels, int64_t pixels, double epsilon) {
    const double count = static_cast<double>(channels);
    for (int64_t c = 0; c < channels; ++c) {
      const T* in = x.channel(c);
      x.prefetch_after(c, pixels);
      for (int64_t p = 0; p < pixels; ++p) mean[p] += in[p];
    }
    for (int64_t p = 0; p < pixels; ++p) mean[p] /= count;
    double m2[kTile] = {};
    for (int64_t c = 0; c < channels; ++c) {
      const T* in = x.channel(c);
      for (int64_t p = 0; p < pixels; ++p) m2[p] += (in[p] - mean[p]) * (in[p] - mean[p]);
    }
    for (int64_t p = 0; p < pixels; ++p) inverse_std[p] = 1 / std::sqrt(m2[p] / count + epsilon);
  }
};

/// A PixelNorm's numbers for the loops.
struct PixelNumbers {
  double epsilon;
  std::vector<double> weight, bias;

  PixelNumbers(const PixelNorm& norm, int64_t channels)
      : epsilon(norm.epsilon),
        weight(numbers_of_channels(norm.weight, channels, 1)),
        bias(numbers_of_channels(norm.bias, channels, 0)) {}
};

template <class T>
void normalise_tile(const Tile<const T>& x, const PixelNumbers& norm, int64_t channels,
                    int64_t pixels, const Tile<T>& y) {
  const TileStatistics statistics(x, channels, pixels, norm.epsilon);
  for (int64_t c = 0; c < channels; ++c) {
    const T* in = x.channel(c);
    T* out = y.channel(c);
    const double weight = norm.weight[c], bias = norm.bias[c];
#pragma GCC ivdep
    for (int64_t p = 0; p < pixels; ++p) {
      const double xhat = (in[p] - statistics.mean[p]) * statistics.inverse_std[p];
      out[p] = static_cast<T>(xhat * weight + bias);
    }
  }
}

/// dx = inverse_std * (dxhat - mean of dxhat - xhat * mean of dxhat * xhat), dxhat = weight * dy.
template <class T>
void gradient_tile(const Tile<const T>& x, const Tile<const T>& grad_y, const PixelNumbers& norm,
                   int64_t channels, int64_t pixels, const Tile<T>& grad_x) {
  const TileStatistics statistics(x, channels, pixels, norm.epsilon);
  const double *mean = statistics.mean, *inverse_std = statistics.inverse_std;
  double offset[kTile] = {}, slope[kTile] = {};
  for (int64_t c = 0; c < channels; ++c) {
    const T *in = x.channel(c), *grad = grad_y.channel(c);
    const double weight = norm.weight[c];
    grad_y.prefetch_after(c, pixels);
    for (int64_t p = 0; p < pixels; ++p) {
      const double dxhat = weight * grad[p];
      offset[p] += dxhat;
      slope[p] += dxhat * (in[p] - mean[p]);
    }
  }
  for (int64_t p = 0; p < pixels; ++p) {
    offset[p] *= inverse_std[p] / static_cast<double>(channels);
    slope[p] *= inverse_std[p] * inverse_std[p] * inverse_std[p] / static_cast<double>(channels);
  }
  for (int64_t c = 0; c < channels; ++c) {
    const T *in = x.channel(c), *grad = grad_y.channel(c);
    T* out = grad_x.channel(c);
    const double weight = norm.weight[c];
#pragma GCC ivdep
    for (int64_t p = 0; p < pixels; ++p)
      out[p] = static_cast<T>(weight * inverse_std[p] * grad[p] - offset[p] -
                              slope[p] * (in[p] - mean[p]));
  }
}

/// Adds dy * xhat to `sums` for each channel, and dy after them.
template <class T>
void add_tile_sums(const Tile<const T>& x, const Tile<const T>& grad_y, double epsilon,
                   int64_t channels, int64_t pixels, double* sums) {
  const TileStatistics statistics(x, channels, pixels, epsilon);
  for (int64_t c = 0; c < channels; ++c) {
    const T *in = x.channel(c), *grad = grad_y.channel(c);
    grad_y.prefetch_after(c, pixels);
    Lanes weighted, plain;
    add_terms(
        pixels,
        [&](int64_t p, auto count) {
          const Vector<double> dy = widened<T>(load_few(grad + p, count));
          const Vector<double> distance =
              widened<T>(load_few(in + p, count)) - load_few(statistics.mean + p, count);
          return Terms<2>{dy * (distance * load_few(statistics.inverse_std + p, count)), dy};
        },
        weighted, plain);
    sums[c] += weighted.sum();
    sums[channels + c] += plain.sum();
  }
}

}  // namespace

namespace cpu {

void normalise_pixels(const at::Tensor& x, const PixelNorm& norm, const at::Tensor& y) {
  write_rows(as_image(y), [&](const at::Tensor& y_image) {
    const std::vector<at::Tensor> images = join_rows({read_rows(as_image(x)), y_image});
    const PixelTiles tiles(images[0]);
    const PixelNumbers numbers(norm, tiles.channels());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
      const ImageView<const scalar_t> in(images[0]);
      const ImageView<scalar_t> out(images[1]);
      tiles.in_parallel([&](int64_t tile) {
        normalise_tile<scalar_t>(tiles.of(in, tile), numbers, tiles.channels(),
                                 tiles.num_pixels(tile), tiles.of(out, tile));
      });
    });
  });
}

void normalise_pixels_gradient(const at::Tensor& x, const at::Tensor& grad_y, const PixelNorm& norm,
                               const at::Tensor& grad_x) {
  write_rows(as_image(grad_x), [&](const at::Tensor& grad_image) {
    const std::vector<at::Tensor> images =
        join_rows({read_rows(as_image(x)), read_rows(as_image(grad_y)), grad_image});
    const PixelTiles tiles(images[0]);
    const PixelNumbers numbers(norm, tiles.channels());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
      const ImageView<const scalar_t> in(images[0]), grad(images[1]);
      const ImageView<scalar_t> out(images[2]);
      tiles.in_parallel([&](int64_t tile) {
        gradient_tile<scalar_t>(tiles.of(in, tile), tiles.of(grad, tile), numbers, tiles.channels(),
                                tiles.num_pixels(tile), tiles.of(out, tile));
      });
    });
  });
}

at::Tensor pixel_weight_gradients(const at::Tensor& x, const at::Tensor& grad_y,
                                  const PixelNorm& norm) {
  const std::vector<at::Tensor> images =
      join_rows({read_rows(as_image(x)), read_rows(as_image(grad_y))});
  const PixelTiles tiles(images[0]);
  // Runs of tiles that each sum on their own, then added in order: how many there are must not
  // depend on the number of threads.
  constexpr int64_t kMaxRuns = 64;
  const int64_t num_runs = std::min(kMaxRuns, tiles.total()), numbers = 2 * tiles.channels();
  std::vector<double> parts(num_runs * numbers);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", [&] {
    const ImageView<const scalar_t> in(images[0]), grad(images[1]);
    at::parallel_for(0, num_runs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run)
        for (int64_t tile = tiles.total() * run / num_runs;
             tile < tiles.total() * (run + 1) / num_runs; ++tile)
          add_tile_sums<scalar_t>(tiles.of(in, tile), tiles.of(grad, tile), norm.epsilon,
                                  tiles.channels(), tiles.num_pixels(tile), &parts[run * numbers]);
    });
  });
  const at::Tensor sums = at::zeros({2, tiles.channels()}, at::kDouble);
  for (int64_t run = 0; run < num_runs; ++run)
    for (int64_t i = 0; i < numbers; ++i) sums.data_ptr<double>()[i] += parts[run * numbers + i];
  return sums;
}

}  // namespace cpu

const LayerNormKernels LayerNormKernels::kCpu{
    .normalise_pixels = cpu::normalise_pixels,
    .normalise_pixels_gradient = cpu::normalise_pixels_gradient,
    .pixel_weight_gradients = cpu::pixel_weight_gradients};

}  // namespace tessera
