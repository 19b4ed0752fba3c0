#include "tessera/kernels/label_sum.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

#include "tessera/kernels/cuda/pixel_losses.h"

namespace tessera {
namespace cuda {
namespace {

void sum_over_labels(const at::Tensor& labels, int64_t num_labels, int64_t ignore_index,
                     const std::vector<double>& weights, const at::Tensor& sum,
                     const at::Tensor& illegal) {
  const c10::cuda::CUDAGuard here(labels.device());
  if (labels.numel() == 0) {
    sum.zero_();
    return;
  }
  const std::optional<StridedWalk> walk =
      walk_together(labels.sizes().vec(), {labels.strides().vec()});
  if (!walk || labels.scalar_type() != at::kLong || std::ssize(weights) > kMostClasses)
    return LabelSumKernels::kAten.sum_over_labels(labels, num_labels, ignore_index, weights, sum,
                                                  illegal);
  LabelSumCall call{.pixels = *walk,
                    .labels = labels.data_ptr<int64_t>(),
                    .num_labels = num_labels,
                    .ignore_index = ignore_index,
                    .weights = {.are_given = !weights.empty(), .of_class = {}}};
  std::ranges::copy(weights, call.weights.of_class);
  const at::Tensor parts = at::empty({parts_of_pixels(walk->count)}, sum.options());
  const at::Tensor illegal_parts = at::empty(parts.sizes(), labels.options());
  C10_CUDA_CHECK(sum_labels(call, parts.data_ptr<double>(), illegal_parts.data_ptr<int64_t>(),
                            sum.data_ptr<double>(), illegal.data_ptr<int64_t>(),
                            c10::cuda::getCurrentCUDAStream()));
}

constexpr LabelSumKernels kTable{.sum_over_labels = sum_over_labels};

}  // namespace
}  // namespace cuda

const LabelSumKernels* const LabelSumKernels::kCuda = &cuda::kTable;

}  // namespace tessera
