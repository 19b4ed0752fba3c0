#include "tessera/kernels/softmax.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <cmath>

#include "tessera/kernels/cpu/elementary.h"
#include "tessera/kernels/cpu/pixel_tiles.h"

namespace tessera {
namespace {

/// One channel of a tile.
using ChannelRow = double[TilePlace::kMaxSize];

/// Softmax is exp(x - max) / sum, its logarithm x - max - log(sum): no exponential overflows.
template <class T>
void softmax_tile(SoftmaxForm form, const PixelTile<const T>& x, int64_t channels, int64_t size,
                  const PixelTile<T>& y) {
  ChannelRow max, sum = {}, row;
  for (int64_t p = 0; p < size; ++p) max[p] = x(0, p);
  for (int64_t c = 1; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p) max[p] = std::max<double>(max[p], x(c, p));
  const bool logarithm = form == SoftmaxForm::kLogSoftmax;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < size; ++p) row[p] = x(c, p) - max[p];
    if (logarithm)
      for (int64_t p = 0; p < size; ++p) y(c, p) = static_cast<T>(row[p]);
    exponentiate(row, size);
    for (int64_t p = 0; p < size; ++p) sum[p] += row[p];
    if (!logarithm)
      for (int64_t p = 0; p < size; ++p) y(c, p) = static_cast<T>(row[p]);
  }
  if (logarithm)
    for (int64_t p = 0; p < size; ++p) sum[p] = std::log(sum[p]);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p)
      y(c, p) = static_cast<T>(logarithm ? y(c, p) - sum[p] : y(c, p) / sum[p]);
}

/// dx = y (dy - sum(y dy)) for softmax, dx = dy - exp(y) sum(dy) for its logarithm.
template <class T>
void softmax_gradient_tile(SoftmaxForm form, const PixelTile<const T>& y,
                           const PixelTile<const T>& dy, int64_t channels, int64_t size,
                           const PixelTile<T>& dx) {
  const bool logarithm = form == SoftmaxForm::kLogSoftmax;
  ChannelRow sum = {}, row;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p)
      sum[p] += logarithm ? dy(c, p) : static_cast<double>(y(c, p)) * dy(c, p);
  for (int64_t c = 0; c < channels; ++c) {
    if (!logarithm) {
      for (int64_t p = 0; p < size; ++p) dx(c, p) = static_cast<T>(y(c, p) * (dy(c, p) - sum[p]));
      continue;
    }
    for (int64_t p = 0; p < size; ++p) row[p] = y(c, p);
    exponentiate(row, size);
    for (int64_t p = 0; p < size; ++p) dx(c, p) = static_cast<T>(dy(c, p) - row[p] * sum[p]);
  }
}

}  // namespace

namespace cpu {

void softmax_channels(SoftmaxForm form, const at::Tensor& x, const at::Tensor& y) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softmax", [&] {
    const PixelView<const scalar_t> from(x);
    const PixelView<scalar_t> to(y);
    in_pixel_tiles(x, [&](const TilePlace& place) {
      softmax_tile<scalar_t>(form, from.tile(place), x.size(1), place.size, to.tile(place));
    });
  });
}

void softmax_channels_gradient(SoftmaxForm form, const at::Tensor& y, const at::Tensor& grad_y,
                               const at::Tensor& grad_x) {
  AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "softmax", [&] {
    const PixelView<const scalar_t> out(y), dy(grad_y);
    const PixelView<scalar_t> dx(grad_x);
    in_pixel_tiles(y, [&](const TilePlace& place) {
      softmax_gradient_tile<scalar_t>(form, out.tile(place), dy.tile(place), y.size(1), place.size,
                                      dx.tile(place));
    });
  });
}

}  // namespace cpu

const SoftmaxKernels SoftmaxKernels::kCpu{
    .softmax_channels = cpu::softmax_channels,
    .softmax_channels_gradient = cpu::softmax_channels_gradient};

}  // namespace tessera
