#pragma once
// Evaluates a function of single elements, given as ATen calls, on views of any strides. The bits
// of a result depend on the element alone: not on where it lies, how its view is strided, how the
// value was cut, or how many threads there are.
//
// ATen by itself does not give that. Its vector code rounds differently from the scalar code that
// it uses for strided views and for the last elements of a row, and GELU in float32 (by oneDNN)
// overlooks the strides of its result. So the elements are handed to it in dense tiles, filled up
// to whole vectors. Contiguous views are their own tiles; others are copied through the cache.
//
// Example:
//   in_dense_tiles({x}, y, [](const Tiles& in, at::Tensor& out) { at::silu_out(out, in[0]); });

#include <ATen/ATen.h>

#include <functional>
#include <vector>

#include "tessera/kernels/kernel.h"

namespace tessera {

/// One tile of each source: one axis, contiguous, all of one size.
using Tiles = std::vector<at::Tensor>;

/// Stores a result for every element, by any number of ATen calls.
using TileKernel = std::function<void(const Tiles& sources, at::Tensor& target)>;

struct DenseTileKernels {
  /// Views of one shape and one real type, with at least one axis. `kernel` runs on several threads
  /// at once and must not write to its sources.
  void (*in_dense_tiles)(const std::vector<at::Tensor>& sources, const at::Tensor& target,
                         const TileKernel& kernel);

  static const DenseTileKernels kCpu;
  static const DenseTileKernels kAten;
};
inline constexpr Kernel<&DenseTileKernels::in_dense_tiles> in_dense_tiles;

}  // namespace tessera
