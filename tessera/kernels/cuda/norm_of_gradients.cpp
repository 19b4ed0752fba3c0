#include "tessera/kernels/cuda/norm_of_gradients.h"

#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

#include "tessera/kernels/optimise.h"

namespace tessera {
namespace {

template <class T>
void clip_runs(const at::Tensor& squares, double max_norm, const at::Tensor& norm,
               const std::vector<at::Tensor>& runs) {
  size_t next = 0;
  do {  // once without buckets, too: for the norm
    cuda::Buckets<T> buckets;
    buckets.first_block[0] = 0;
    for (; next < runs.size() && buckets.count < cuda::kMostBuckets; ++next) {
      const int i = buckets.count++;
      buckets.numbers[i] = runs[next].data_ptr<T>();
      buckets.sizes[i] = runs[next].numel();
      const int64_t blocks = (buckets.sizes[i] + cuda::kClippedByBlock - 1) / cuda::kClippedByBlock;
      buckets.first_block[i + 1] = buckets.first_block[i] + static_cast<int>(blocks);
    }
    cuda::clip_by_norm(squares.data_ptr<double>(), squares.numel(), max_norm,
                       norm.data_ptr<double>(), buckets, at::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  } while (next < runs.size());
}

}  // namespace

namespace cuda {

void sum_of_squares(const at::Tensor& gradient, const at::Tensor& sum) {
  const c10::cuda::CUDAGuard guard(gradient.device());
  const at::Tensor run = gradient.contiguous();
  const at::Tensor parts =
      at::empty({parts_of_squares(run.numel())}, run.options().dtype(at::kDouble));
  AT_DISPATCH_FLOATING_TYPES(run.scalar_type(), "sum_of_squares", [&] {
    sum_squares(static_cast<const scalar_t*>(run.data_ptr<scalar_t>()), run.numel(),
                parts.data_ptr<double>(), sum.data_ptr<double>(), at::cuda::getCurrentCUDAStream());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void clip_gradients(const at::Tensor& squares, double max_norm, const at::Tensor& norm,
                    const std::vector<at::Tensor>& buckets) {
  const c10::cuda::CUDAGuard guard(squares.device());
  const bool are_runs = std::all_of(buckets.begin(), buckets.end(), [&](const at::Tensor& bucket) {
    return bucket.is_contiguous() && bucket.scalar_type() == buckets.front().scalar_type();
  });
  if (!are_runs)
    return NormOfGradientsKernels::kAten.clip_gradients(squares, max_norm, norm, buckets);
  const bool is_wide = !buckets.empty() && buckets.front().scalar_type() == at::kDouble;
  const at::Tensor in_a_row = squares.contiguous();
  if (is_wide)
    clip_runs<double>(in_a_row, max_norm, norm, buckets);
  else
    clip_runs<float>(in_a_row, max_norm, norm, buckets);
}

}  // namespace cuda

namespace {

constexpr NormOfGradientsKernels kNormOfGradientsOnGpu{.sum_of_squares = cuda::sum_of_squares,
                                                       .clip_gradients = cuda::clip_gradients};

}  // namespace

const NormOfGradientsKernels* const NormOfGradientsKernels::kCuda = &kNormOfGradientsOnGpu;

}  // namespace tessera
