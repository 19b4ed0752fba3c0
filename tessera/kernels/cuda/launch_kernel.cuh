#pragma once
// Starting a kernel, and choosing its variant by the images' type, width and axes.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tessera/kernels/cuda/image_tiles.h"

namespace tessera::cuda {

template <class... Parameters>
cudaError_t launch_kernel(void (*kernel)(Parameters...), int64_t blocks, int threads,
                          cudaStream_t stream, const Parameters&... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

template <class T>
struct TypeTag {
  using Type = T;
};
template <int kValue>
struct Number {
  static constexpr int value = kValue;
};

/// run(TypeTag<T>, Number<width>, Number<axes>); widths are 1 and what makes 16 bytes.
template <class Run>
cudaError_t choose_variant(NumberType type, const ImageTiles& tiles, Run&& run) {
  const auto with_axes = [&](auto tag, auto width) {
    return tiles.pixels.num_axes == 1 ? run(tag, width, Number<1>{})
                                      : run(tag, width, Number<kPixelAxes>{});
  };
  const auto with_width = [&](auto tag, auto widest) {
    return tiles.width == 1 ? with_axes(tag, Number<1>{}) : with_axes(tag, widest);
  };
  if (type == NumberType::kFloat64) return with_width(TypeTag<double>{}, Number<2>{});
  if (type == NumberType::kFloat32) return with_width(TypeTag<float>{}, Number<4>{});
  return with_width(TypeTag<__nv_bfloat16>{}, Number<8>{});
}

}  // namespace tessera::cuda
