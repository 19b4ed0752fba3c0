#pragma once
// Sum and maximum over the channels of each pixel. Views of any strides, batch x channels x space;
// results have one channel.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct ChannelReductionKernels {
  /// y = Σ x / divisor, summed in float64, in an order that depends on the number of channels
  /// alone.
  void (*sum_channels)(const at::Tensor& x, double divisor, const at::Tensor& y);
  /// The first of equal values wins, and the first NaN over all: PyTorch's rules. `choices`, bytes
  /// or int32, gets the chosen channel of each pixel in row-major order; bytes do for 256 channels.
  void (*channel_maxima)(const at::Tensor& x, const at::Tensor& y, const at::Tensor& choices);
  /// Stores the gradient of all channels.
  void (*channel_maxima_gradient)(const at::Tensor& grad_y, const at::Tensor& choices,
                                  const at::Tensor& grad_x);

  static const ChannelReductionKernels kCpu;
  static const ChannelReductionKernels kAten;
};
inline constexpr Kernel<&ChannelReductionKernels::sum_channels> sum_channels;
inline constexpr Kernel<&ChannelReductionKernels::channel_maxima> channel_maxima;
inline constexpr Kernel<&ChannelReductionKernels::channel_maxima_gradient> channel_maxima_gradient;

}  // namespace tessera
