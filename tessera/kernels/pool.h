#pragma once
// Max and average pooling of a piece, and what undoes a max pooling. Windows are clipped to the
// image by global coordinates, so that no kernel reads a fill, neither at the border of the image
// nor at that of a piece. Images are views of any strides, batch x channels x 1 to 3 spatial axes;
// an input holds exactly what the piece's outputs need.
//
// Example, with the choices of the windows kept for backward:
//   pool_maxima(piece, x, y, choices);
//   pool_maxima_gradient(piece, dy, choices, dx);

#include <ATen/ATen.h>

#include <array>
#include <cstdint>

#include "tessera/geometry/box.h"
#include "tessera/geometry/divide.h"
#include "tessera/kernels/kernel.h"

namespace tessera {

/// One of the axes D, H, W. Output o has its taps at o * stride - padding + k * dilation.
struct PoolAxis {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t padding = 0;
  int64_t input_size = 1;
  Range out{0, 1};  // outputs of the piece
  Range in{0, 1};   // inputs that they need, inside the image

  int64_t tap(int64_t output, int64_t k) const { return output * stride - padding + k * dilation; }
  /// The k whose taps of this output lie inside the image.
  Range taps_inside(int64_t output) const {
    const int64_t first = tap(output, 0);
    return intersect(Range{0, kernel},
                     Range{ceil_div(-first, dilation), ceil_div(input_size - first, dilation)});
  }
  /// The outputs of the piece whose tap k lies inside the image.
  Range outputs_inside(int64_t k) const {
    const int64_t first = tap(0, k);
    return intersect(out, Range{ceil_div(-first, stride), ceil_div(input_size - first, stride)});
  }
};

/// A piece of a pooling's output on the axes D, H, W; axes that the value lacks have kernel 1.
using PoolPiece = std::array<PoolAxis, 3>;

struct MaxPoolKernels {
  /// The first of equal values wins, and a NaN always does: PyTorch's rules. `choices`, bytes or
  /// int32, gets the index of the chosen tap for each output of the piece; bytes do for windows of
  /// up to 255 taps. They are in the row-major order of the outputs, and kCuda's in that of
  /// samples, pixels and channels, so that they lie as images do on a GPU: what kCuda has chosen
  /// kCuda alone can read.
  void (*pool_maxima)(const PoolPiece& piece, const at::Tensor& x, const at::Tensor& y,
                      const at::Tensor& choices);
  /// Stores the gradient of all of x.
  void (*pool_maxima_gradient)(const PoolPiece& piece, const at::Tensor& grad_y,
                               const at::Tensor& choices, const at::Tensor& grad_x);

  static const MaxPoolKernels kCpu;
  static const MaxPoolKernels kAten;
  static const MaxPoolKernels* const kCuda;
};
inline constexpr Kernel<&MaxPoolKernels::pool_maxima> pool_maxima;
inline constexpr Kernel<&MaxPoolKernels::pool_maxima_gradient> pool_maxima_gradient;

/// What a window's sum is divided by.
struct PoolDivisor {
  bool count_include_pad = true;
  int64_t override_ = 0;  // 0: the number of elements
};

struct AveragePoolKernels {
  void (*pool_averages)(const PoolPiece& piece, const PoolDivisor& divisor, const at::Tensor& x,
                        const at::Tensor& y);
  void (*pool_averages_gradient)(const PoolPiece& piece, const PoolDivisor& divisor,
                                 const at::Tensor& grad_y, const at::Tensor& grad_x);

  static const AveragePoolKernels kCpu;
  static const AveragePoolKernels kAten;
  static const AveragePoolKernels* const kCuda;
};
inline constexpr Kernel<&AveragePoolKernels::pool_averages> pool_averages;
inline constexpr Kernel<&AveragePoolKernels::pool_averages_gradient> pool_averages_gradient;

struct MaxUnpoolKernels {
  /// `values` go to where `x` has the maxima of the piece's windows; other pixels of `y`, which
  /// covers the ranges `box` along D, H, W, get 0. `places`, int32, gets for each value where in
  /// y's plane it went, -1 for those outside of `box`.
  void (*unpool_maxima)(const PoolPiece& piece, const std::array<Range, 3>& box,
                        const at::Tensor& values, const at::Tensor& x, const at::Tensor& y,
                        const at::Tensor& places);
  void (*unpool_maxima_gradient)(const PoolPiece& piece, const at::Tensor& grad_y,
                                 const at::Tensor& places, const at::Tensor& grad_values);

  static const MaxUnpoolKernels kCpu;
  static const MaxUnpoolKernels kAten;
};
inline constexpr Kernel<&MaxUnpoolKernels::unpool_maxima> unpool_maxima;
inline constexpr Kernel<&MaxUnpoolKernels::unpool_maxima_gradient> unpool_maxima_gradient;

}  // namespace tessera
