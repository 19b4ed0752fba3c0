#pragma once
// The loops of interpolation on one piece, and their adjoint. Output rows are found in two steps,
// which keep the work along contiguous memory: blend the input rows that the output row reads, then
// take the outputs from the blended row.

#include <ATen/ATen.h>

#include <array>
#include <vector>

#include "tessera/geometry/window.h"
#include "tessera/kernels/kernel.h"

namespace tessera {

/// Where the outputs of a piece read along one axis, counted from the start of the needed range.
using AxisSources = std::vector<Interpolation::Source>;

/// Along D, H, W. An axis that the value lacks has one output, which reads input 0.
using PieceSources = std::array<AxisSources, 3>;

struct InterpolateKernels {
  /// Tensors are views N x C x space with any strides, of float32 or float64; none is empty.
  /// But for kCpu they may be bf16.
  void (*interpolate_piece)(const PieceSources& sources, const at::Tensor& x, const at::Tensor& y);
  /// Stores all of grad_x.
  void (*interpolate_piece_adjoint)(const PieceSources& sources, const at::Tensor& grad_y,
                                    const at::Tensor& grad_x);

  static const InterpolateKernels kCpu;
  static const InterpolateKernels kAten;
  static const InterpolateKernels* const kCuda;
};
inline constexpr Kernel<&InterpolateKernels::interpolate_piece> interpolate_piece;
inline constexpr Kernel<&InterpolateKernels::interpolate_piece_adjoint> interpolate_piece_adjoint;

}  // namespace tessera
