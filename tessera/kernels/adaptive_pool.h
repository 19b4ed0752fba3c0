#pragma once
// Adaptive average and max pooling of a piece: as many outputs as are asked for, with windows by
// global index. Images are views of any strides, batch x channels x 1 to 3 spatial axes; an input
// holds exactly what the piece's outputs read.
//
// Example:
//   pool_adaptive_averages(piece, x, y);
//   pool_adaptive_averages_gradient(piece, dy, dx);

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/geometry/box.h"
#include "tessera/kernels/kernel.h"

namespace tessera {

/// One of the axes D, H, W.
struct AdaptiveAxis {
  int64_t input_size = 1;
  int64_t output_size = 1;
  Range out{0, 1};  // outputs of the piece
  Range in{0, 1};   // inputs that they read

  /// The inputs of an output, counted from the start of the image.
  Range window(int64_t output) const {
    return {output * input_size / output_size,
            ((output + 1) * input_size + output_size - 1) / output_size};
  }
  /// At least the size of every window.
  int64_t largest_window() const {
    return input_size % output_size == 0 ? input_size / output_size
                                         : std::min(input_size, input_size / output_size + 2);
  }
};

/// A piece of the output on the axes D, H, W; axes that the value lacks have size 1.
using AdaptivePiece = std::array<AdaptiveAxis, 3>;

struct AdaptivePoolKernels {
  void (*pool_adaptive_averages)(const AdaptivePiece& piece, const at::Tensor& x,
                                 const at::Tensor& y);
  /// Stores the gradient of all of x.
  void (*pool_adaptive_averages_gradient)(const AdaptivePiece& piece, const at::Tensor& grad_y,
                                          const at::Tensor& grad_x);
  /// The first of equal values wins, and a NaN always does: PyTorch's rules. `choices`, bytes or
  /// int32, gets for each output, in row-major order, the place in its window in scan order; bytes
  /// do for windows of up to 256 elements.
  void (*pool_adaptive_maxima)(const AdaptivePiece& piece, const at::Tensor& x, const at::Tensor& y,
                               const at::Tensor& choices);
  void (*pool_adaptive_maxima_gradient)(const AdaptivePiece& piece, const at::Tensor& grad_y,
                                        const at::Tensor& choices, const at::Tensor& grad_x);

  static const AdaptivePoolKernels kCpu;
  static const AdaptivePoolKernels kAten;
};
inline constexpr Kernel<&AdaptivePoolKernels::pool_adaptive_averages> pool_adaptive_averages;
inline constexpr Kernel<&AdaptivePoolKernels::pool_adaptive_averages_gradient>
    pool_adaptive_averages_gradient;
inline constexpr Kernel<&AdaptivePoolKernels::pool_adaptive_maxima> pool_adaptive_maxima;
inline constexpr Kernel<&AdaptivePoolKernels::pool_adaptive_maxima_gradient>
    pool_adaptive_maxima_gradient;

}  // namespace tessera
