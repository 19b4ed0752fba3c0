#pragma once
// The loops of layer normalisation over channels on one piece, for CPU: every pixel has a mean and
// a variance of its own, over its channels. Channels lie far apart in memory, so pixels are taken
// in tiles that stay in the cache, with the channels outside and the pixels of the tile inside.
// Sums are float64; backward takes mean and variance again from the tile that it reads anyway,
// which keeps nothing.
//
// Tensors are views N x C x space or N x C of one shape and type (float32 or float64), with any
// strides and with all channels. No view is empty. Bits do not depend on the number of threads.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

/// y = xhat * weight + bias, with xhat = (x - mean) / sqrt(variance + epsilon); one weight and one
/// bias per channel, or none: 1 and 0.
struct PixelNorm {
  double epsilon = 0;
  at::Tensor weight, bias;
};

struct LayerNormKernels {
  void (*normalise_pixels)(const at::Tensor& x, const PixelNorm& norm, const at::Tensor& y);
  void (*normalise_pixels_gradient)(const at::Tensor& x, const at::Tensor& grad_y,
                                    const PixelNorm& norm, const at::Tensor& grad_x);
  /// Sums of dy * xhat for each channel, followed by those of dy: float64, 2 x channels.
  at::Tensor (*pixel_weight_gradients)(const at::Tensor& x, const at::Tensor& grad_y,
                                       const PixelNorm& norm);

  static const LayerNormKernels kCpu;
  static const LayerNormKernels kAten;
};
inline constexpr Kernel<&LayerNormKernels::normalise_pixels> normalise_pixels;
inline constexpr Kernel<&LayerNormKernels::normalise_pixels_gradient> normalise_pixels_gradient;
inline constexpr Kernel<&LayerNormKernels::pixel_weight_gradients> pixel_weight_gradients;

}  // namespace tessera
