#include "tessera/kernels/channel_reduction.h"

#include <ATen/Dispatch.h>

#include <type_traits>

#include "tessera/kernels/cpu/pixel_tiles.h"

namespace tessera {
namespace {

/// Sums in float64 and in the order of the channels, whatever the layout.
template <class T>
void sum_channel_tile(const PixelTile<const T>& x, int64_t channels, int64_t size, double divisor,
                      const PixelTile<T>& y) {
  double sum[TilePlace::kMaxSize] = {};
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p) sum[p] += x(c, p);
  for (int64_t p = 0; p < size; ++p) y(0, p) = static_cast<T>(sum[p] / divisor);
}

/// The first of equal values wins, and the first NaN over all: PyTorch's rules.
template <class T, class Code>
void max_channel_tile(const PixelTile<const T>& x, int64_t channels, int64_t size,
                      const PixelTile<T>& y, Code* codes) {
  // As wide as the values, so that both are blended in the same vector lanes.
  using Choice = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  T best[TilePlace::kMaxSize];
  Choice choice[TilePlace::kMaxSize] = {};
  for (int64_t p = 0; p < size; ++p) best[p] = x(0, p);
  for (int64_t c = 1; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p) {
      const T value = x(c, p);
      const bool take = (value > best[p]) | ((value != value) & (best[p] == best[p]));
      best[p] = take ? value : best[p];
      choice[p] = take ? static_cast<Choice>(c) : choice[p];
    }
  for (int64_t p = 0; p < size; ++p) y(0, p) = best[p];
  for (int64_t p = 0; p < size; ++p) codes[p] = static_cast<Code>(choice[p]);
}

template <class T, class Code>
void max_channel_gradient_tile(const PixelTile<const T>& dy, const Code* codes, int64_t channels,
                               int64_t size, const PixelTile<T>& dx) {
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < size; ++p)
      dx(c, p) = codes[p] == static_cast<Code>(c) ? dy(0, p) : T(0);
}

/// Calls run.template operator()<scalar type>(choices).
template <class Run>
void on_channels(const at::Tensor& x, const at::Tensor& saved, Run&& run) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "channel_max", [&] {
    if (saved.scalar_type() == at::kByte)
      run.template operator()<scalar_t>(saved.data_ptr<uint8_t>());
    else
      run.template operator()<scalar_t>(saved.data_ptr<int32_t>());
  });
}

}  // namespace

namespace cpu {

void sum_channels(const at::Tensor& x, double divisor, const at::Tensor& y) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "sum_channels", [&] {
    const PixelView<const scalar_t> from(x);
    const PixelView<scalar_t> to(y);
    in_pixel_tiles(x, [&](const TilePlace& place) {
      sum_channel_tile<scalar_t>(from.tile(place), x.size(1), place.size, divisor, to.tile(place));
    });
  });
}

void channel_maxima(const at::Tensor& x, const at::Tensor& y, const at::Tensor& choices) {
  on_channels(x, choices, [&]<class T>(auto* codes) {
    const PixelView<const T> from(x);
    const PixelView<T> to(y);
    in_pixel_tiles(x, [&](const TilePlace& place) {
      max_channel_tile<T>(from.tile(place), x.size(1), place.size, to.tile(place),
                          codes + place.first_pixel);
    });
  });
}

void channel_maxima_gradient(const at::Tensor& grad_y, const at::Tensor& choices,
                             const at::Tensor& grad_x) {
  on_channels(grad_x, choices, [&]<class T>(const auto* codes) {
    const PixelView<const T> dy(grad_y);
    const PixelView<T> dx(grad_x);
    in_pixel_tiles(grad_x, [&](const TilePlace& place) {
      max_channel_gradient_tile<T>(dy.tile(place), codes + place.first_pixel, grad_x.size(1),
                                   place.size, dx.tile(place));
    });
  });
}

}  // namespace cpu

const ChannelReductionKernels ChannelReductionKernels::kCpu{
    .sum_channels = cpu::sum_channels,
    .channel_maxima = cpu::channel_maxima,
    .channel_maxima_gradient = cpu::channel_maxima_gradient};

}  // namespace tessera
