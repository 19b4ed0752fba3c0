#include "tessera/kernels/cross_entropy.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "tessera/kernels/cuda/image_binding.h"
#include "tessera/kernels/cuda/pixel_losses.h"

namespace tessera {
namespace cuda {
namespace {

/// Along the labels' axes.
std::vector<int64_t> pixel_strides(const at::Tensor& image) {
  std::vector<int64_t> strides = image.strides().vec();
  strides.erase(strides.begin() + 1);
  return strides;
}

/// Whether a pixel's classes are read by accesses of up to 16 bytes.
bool lies_in_packs(const at::Tensor& image) {
  const int64_t classes = image.size(1), width = static_cast<int64_t>(image.element_size());
  if (image.stride(1) != 1) return false;
  const int64_t pack = std::min<int64_t>(classes, 16 / width);
  const std::vector<int64_t> strides = pixel_strides(image);
  return reinterpret_cast<uintptr_t>(image.data_ptr()) % static_cast<uintptr_t>(pack * width) ==
             0 &&
         std::ranges::all_of(strides, [&](int64_t stride) { return stride % pack == 0; });
}

ClassWeights given(const std::vector<double>& weights) {
  ClassWeights result{.are_given = !weights.empty(), .of_class = {}};
  std::ranges::copy(weights, result.of_class);
  return result;
}

double total(const CrossEntropyTerms& terms, int64_t classes) {
  if (terms.class_weights.empty()) return static_cast<double>(classes);
  return std::accumulate(terms.class_weights.begin(), terms.class_weights.end(), 0.0);
}

/// Of views that are not empty. Nothing where there is no kernel for them. The gradient may be
/// undefined.
std::optional<CrossEntropyCall> bind(const CrossEntropyTerms& terms, const at::Tensor& logits,
                                     const at::Tensor& labels, const at::Tensor& gradient) {
  const int64_t classes = logits.size(1);
  const at::Tensor& target = gradient.defined() ? gradient : logits;
  const std::optional<NumberType> type = number_type(logits);
  const bool is_wide = logits.scalar_type() == at::kDouble;
  if (!type || classes > (is_wide ? kMostWideClasses : kMostClasses) ||
      labels.scalar_type() != at::kLong || target.scalar_type() != logits.scalar_type())
    return std::nullopt;
  const std::optional<StridedWalk> pixels = walk_together(
      labels.sizes().vec(), {labels.strides().vec(), pixel_strides(logits), pixel_strides(target)});
  if (!pixels) return std::nullopt;
  const bool is_packed = classes >= 2 && classes <= 16 &&
                         std::has_single_bit(static_cast<uint64_t>(classes)) &&
                         lies_in_packs(logits) && lies_in_packs(target);
  return CrossEntropyCall{.type = *type,
                          .pixels = *pixels,
                          .labels = labels.data_ptr<int64_t>(),
                          .logits = logits.data_ptr(),
                          .gradient = gradient.defined() ? gradient.data_ptr() : nullptr,
                          .logit_stride = logits.stride(1),
                          .gradient_stride = target.stride(1),
                          .classes = static_cast<int>(classes),
                          .is_packed = is_packed,
                          .ignore_index = terms.ignore_index,
                          .hard = 1 - terms.label_smoothing,
                          .soft = terms.label_smoothing / static_cast<double>(classes),
                          .total_weight = total(terms, classes),
                          .weights = given(terms.class_weights)};
}

at::Tensor cross_entropy_sum(const CrossEntropyTerms& terms, const at::Tensor& logits,
                             const at::Tensor& labels) {
  const c10::cuda::CUDAGuard here(logits.device());
  const at::TensorOptions wide = logits.options().dtype(at::kDouble);
  if (labels.numel() == 0) return at::zeros({}, wide);
  const std::optional<CrossEntropyCall> call = bind(terms, logits, labels, {});
  if (!call) return CrossEntropyKernels::kAten.cross_entropy_sum(terms, logits, labels);
  const at::Tensor sum = at::empty({}, wide);
  const at::Tensor parts = at::empty({parts_of_pixels(call->pixels.count)}, wide);
  C10_CUDA_CHECK(sum_cross_entropy(*call, parts.data_ptr<double>(), sum.data_ptr<double>(),
                                   c10::cuda::getCurrentCUDAStream()));
  return sum;
}

void cross_entropy_gradient(const CrossEntropyTerms& terms, const at::Tensor& factor,
                            const at::Tensor& logits, const at::Tensor& labels,
                            const at::Tensor& gradient) {
  const c10::cuda::CUDAGuard here(logits.device());
  if (labels.numel() == 0) return;
  const std::optional<CrossEntropyCall> call = bind(terms, logits, labels, gradient);
  if (!call || !factor.is_cuda())
    return CrossEntropyKernels::kAten.cross_entropy_gradient(terms, factor, logits, labels,
                                                             gradient);
  C10_CUDA_CHECK(find_cross_entropy_gradient(*call, factor.data_ptr<double>(),
                                             c10::cuda::getCurrentCUDAStream()));
}

constexpr CrossEntropyKernels kTable{.cross_entropy_sum = cross_entropy_sum,
                                     .cross_entropy_gradient = cross_entropy_gradient};

}  // namespace
}  // namespace cuda

const CrossEntropyKernels* const CrossEntropyKernels::kCuda = &cuda::kTable;

}  // namespace tessera
