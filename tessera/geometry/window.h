#pragma once
// Which inputs does an output need? Every operator with a neighbourhood answers through here, along
// one axis at a time and from global output coordinates, so that strides keep their phase on parts
// of any size. Never `kernel / 2`.

#include <array>
#include <cstdint>

#include "tessera/geometry/range.h"

namespace tessera {

/// Window of a convolution or pooling: output o reads inputs o*stride - pad_low + k*dilation for
/// k in [0, kernel). Transposed: input i writes outputs i*stride - pad_low + k*dilation.
/// Every function throws InvalidInput when kernel, stride or dilation is below 1.
struct Window {
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_low = 0;
  int64_t pad_high = 0;
  int64_t output_padding = 0;  // transposed only
  bool transposed = false;
  bool ceil_mode = false;  // pooling only

  /// Size of the output for an input of `input_size`, by PyTorch's rules (in ceil mode the last
  /// window must start inside the input or its low padding). May be <= 0: no output is possible.
  int64_t output_size(int64_t input_size) const;

  /// Inputs that the outputs `out` read: the smallest range that holds them. Forward windows: not
  /// clipped, so it may leave [0, input_size) where the window reads padding; its size is then
  /// exactly (out.size() - 1) * stride + dilation * (kernel - 1) + 1. Transposed windows: clipped
  /// to [0, input_size), and it may be empty although `out` is not (stride > kernel, output
  /// padding). An empty `out` needs an empty range.
  Range needed(const Range& out, int64_t input_size) const;

  /// Outputs that the inputs `in` can reach: the smallest range that holds them, not clipped. For a
  /// transposed window this is the range which a kernel without padding produces from `in`.
  Range reached(const Range& in) const;

  bool operator==(const Window&) const = default;
};

/// As PyTorch's modes; kLinear is its linear, bilinear or trilinear, and kCubic its bicubic.
enum class InterpolationMode { kNearest, kNearestExact, kLinear, kCubic };
enum class Corners { kNotAligned, kAligned };

/// Interpolation along one axis from `input_size` to `output_size`, in PyTorch's coordinates.
/// `scale` > 0 is the user's scale factor (PyTorch then uses 1/scale, not the ratio of the sizes);
/// 0 derives it from the sizes. Aligned corners ignore it.
///
/// Linear and cubic coordinates are PyTorch's in float64. The nearest index is PyTorch's float
/// formula for every type. Where the ratio of the sizes is not a small integer its kernels differ
/// among themselves in the last bit (the float64 forward of contiguous tensors computes in double,
/// its own gradient and the GPU in float), and an output exactly on a pixel's edge can then fall on
/// either side.
struct Interpolation {
  InterpolationMode mode = InterpolationMode::kLinear;
  Corners corners = Corners::kNotAligned;
  int64_t input_size = 0;
  int64_t output_size = 0;
  double scale = 0;

  static constexpr int kMaxTaps = 4;
  /// Output o is the sum of weight[t] * in[index[t]] over the taps, whose indices do not decrease.
  /// The number of taps depends on the mode alone: 1 with weight 1 (nearest), 2 or 4.
  struct Source {
    int num_taps = 1;
    std::array<int64_t, kMaxTaps> index{};
    std::array<double, kMaxTaps> weight{1};

    int64_t first() const { return index[0]; }
    int64_t last() const { return index[num_taps - 1]; }
  };
  /// `out_index` lies in [0, output_size).
  Source source(int64_t out_index) const;

  /// Inputs that the outputs `out` read; inside [0, input_size).
  Range needed(const Range& out) const;
};

}  // namespace tessera
