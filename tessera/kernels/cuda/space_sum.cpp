#include "tessera/kernels/space_sum.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "tessera/kernels/cuda/image_binding.h"
#include "tessera/kernels/cuda/space_sum_launch.h"

namespace tessera {
namespace cuda {
namespace {

constexpr int kPixelsOfThread = 64;  // as many as sums in float32 bear

void sum_space(const at::Tensor& x, double scale, const at::Tensor& sums) {
  const std::optional<BoundImages> bound = bind_images({x}, x.size(0));
  const std::optional<NumberType> type = number_type(sums);
  if (!bound || !type || type == NumberType::kBFloat16)
    return SpaceSumKernels::kAten.sum_space(x, scale, sums);
  const c10::cuda::CUDAGuard here(x.device());
  const ImageTiles tiles = bound->tiles(kPixelsOfThread);
  const at::Tensor parts = at::empty({tiles.rows * tiles.channels * tiles.pixel_tiles, 2},
                                     x.options().dtype(at::kDouble));
  const SpaceSumCall call{.type = bound->type,
                          .tiles = tiles,
                          .x = bound->images[0],
                          .parts = static_cast<PairOfSums*>(parts.data_ptr()),
                          .scale = scale,
                          .type_of_sums = *type,
                          .sums = sums.data_ptr(),
                          .row_stride = sums.stride(0),
                          .channel_stride = sums.stride(1)};
  C10_CUDA_CHECK(launch(call, c10::cuda::getCurrentCUDAStream()));
}

constexpr SpaceSumKernels kTable{.sum_space = sum_space};

}  // namespace
}  // namespace cuda

const SpaceSumKernels* const SpaceSumKernels::kCuda = &cuda::kTable;

}  // namespace tessera
