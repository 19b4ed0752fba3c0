#pragma once
// Softmax over the channels of each pixel, and its logarithm. Views of any strides, batch x
// channels x space.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

enum class SoftmaxForm { kSoftmax, kLogSoftmax };

struct SoftmaxKernels {
  void (*softmax_channels)(SoftmaxForm form, const at::Tensor& x, const at::Tensor& y);
  /// From the result and its gradient.
  void (*softmax_channels_gradient)(SoftmaxForm form, const at::Tensor& y, const at::Tensor& grad_y,
                                    const at::Tensor& grad_x);

  static const SoftmaxKernels kCpu;
  static const SoftmaxKernels kAten;
};
inline constexpr Kernel<&SoftmaxKernels::softmax_channels> softmax_channels;
inline constexpr Kernel<&SoftmaxKernels::softmax_channels_gradient> softmax_channels_gradient;

}  // namespace tessera
