#include "tessera/kernels/cuda/pool_binding.h"

#include <algorithm>

namespace tessera::cuda {

WindowAxis window_axis(const PoolAxis& axis) {
  return {.kernel = static_cast<int>(axis.kernel),
          .stride = static_cast<int>(axis.stride),
          .dilation = static_cast<int>(axis.dilation),
          .first = static_cast<int>(axis.tap(axis.out.begin, 0) - axis.in.begin),
          .outputs = static_cast<int>(axis.out.size()),
          .inputs = static_cast<int>(axis.in.size()),
          .padded_end = static_cast<int>(axis.input_size + axis.padding - axis.in.begin)};
}

bool windows_tile(const PoolPiece& piece) {
  return std::ranges::all_of(
      piece, [](const PoolAxis& axis) { return axis.kernel == axis.stride && axis.dilation == 1; });
}

}  // namespace tessera::cuda
