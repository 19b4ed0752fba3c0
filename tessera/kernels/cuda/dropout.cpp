#include "tessera/kernels/dropout.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>

#include "tessera/kernels/cuda/dropout.h"
#include "tessera/kernels/cuda/image_binding.h"

namespace tessera {
namespace cuda {
namespace {

void apply_dropout(const DropoutMask& mask, const Fate& kept, const Fate& dropped,
                   const at::Tensor& from, const at::Tensor& to) {
  if (to.numel() == 0) return;
  const std::optional<NumberType> type = number_type(to);
  const std::optional<StridedWalk> walk =
      walk_together(to.sizes().vec(), {to.strides().vec(), from.strides().vec(), mask.strides});
  if (!type || !walk || from.scalar_type() != to.scalar_type())
    return DropoutKernels::kAten.apply_dropout(mask, kept, dropped, from, to);
  const c10::cuda::CUDAGuard here(to.device());
  const DropoutCall call{
      .type = *type,
      .walk = *walk,
      .source = from.data_ptr(),
      .target = to.data_ptr(),
      .key_state = mask.key.state(),
      .state_on_device = mask.state.defined() ? mask.state.data_ptr<int64_t>() : nullptr,
      .first_index = mask.first_index,
      .dropped_below = static_cast<uint64_t>(std::ceil(mask.probability * 0x1p53)),
      .kept_factor = kept.factor,
      .kept_offset = kept.offset,
      .dropped_factor = dropped.factor,
      .dropped_offset = dropped.offset};
  C10_CUDA_CHECK(drop_out(call, c10::cuda::getCurrentCUDAStream()));
}

constexpr DropoutKernels kTable{.apply_dropout = apply_dropout};

}  // namespace
}  // namespace cuda

const DropoutKernels* const DropoutKernels::kCuda = &cuda::kTable;

}  // namespace tessera
