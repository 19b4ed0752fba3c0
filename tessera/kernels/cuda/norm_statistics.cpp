#include "tessera/kernels/norm_statistics.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>

#include "tessera/kernels/cuda/norm_statistics.cuh"

namespace tessera {
namespace {

bool is_dense(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.scalar_type() == type && tensor.is_contiguous();
}

/// Of what a kernel takes.
bool is_parameter(const at::Tensor& tensor) {
  return (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble) &&
         tensor.is_contiguous();
}

cuda::ParameterNumber number_of(const at::Tensor& parameter) {
  return parameter.defined() && parameter.scalar_type() == at::kFloat
             ? cuda::ParameterNumber::kFloat32
             : cuda::ParameterNumber::kFloat64;
}

void mean_and_inverse_std_by_cuda(const at::Tensor& moments, double epsilon, const at::Tensor& mean,
                                  const at::Tensor& inverse_std) {
  if (!is_dense(moments, at::kDouble) || !is_dense(mean, at::kDouble) ||
      !is_dense(inverse_std, at::kDouble))
    return NormStatisticsKernels::kAten.mean_and_inverse_std(moments, epsilon, mean, inverse_std);
  if (mean.numel() == 0) return;
  C10_CUDA_CHECK(cuda::launch_mean_and_inverse_std(
      moments.data_ptr<double>(), mean.numel(), epsilon, mean.data_ptr<double>(),
      inverse_std.data_ptr<double>(), at::cuda::getCurrentCUDAStream()));
}

void update_running_by_cuda(const at::Tensor& moments, double momentum,
                            const at::Tensor& running_mean, const at::Tensor& running_variance) {
  const bool fits = is_dense(moments, at::kDouble) && is_parameter(running_mean) &&
                    is_dense(running_variance, running_mean.scalar_type());
  if (!fits)
    return NormStatisticsKernels::kAten.update_running_moments(moments, momentum, running_mean,
                                                               running_variance);
  if (running_mean.numel() == 0) return;
  C10_CUDA_CHECK(cuda::launch_update_running(
      moments.data_ptr<double>(), running_mean.numel(), momentum, running_mean.data_ptr(),
      running_variance.data_ptr(), number_of(running_mean), at::cuda::getCurrentCUDAStream()));
}

void gradient_means_by_cuda(const at::Tensor& sums, double count, const at::Tensor& weight,
                            const at::Tensor& means) {
  const bool fits = sums.scalar_type() == at::kDouble && sums.stride(1) == 1 &&
                    is_dense(means, at::kDouble) && (!weight.defined() || is_parameter(weight));
  if (!fits) return NormStatisticsKernels::kAten.gradient_means(sums, count, weight, means);
  if (means.numel() == 0) return;
  C10_CUDA_CHECK(cuda::launch_gradient_means(sums.data_ptr<double>(), sums.stride(0), sums.size(1),
                                             count, weight.defined() ? weight.data_ptr() : nullptr,
                                             number_of(weight), means.data_ptr<double>(),
                                             at::cuda::getCurrentCUDAStream()));
}

constexpr NormStatisticsKernels kTable{.mean_and_inverse_std = mean_and_inverse_std_by_cuda,
                                       .update_running_moments = update_running_by_cuda,
                                       .gradient_means = gradient_means_by_cuda};

}  // namespace

const NormStatisticsKernels* const NormStatisticsKernels::kCuda = &kTable;

}  // namespace tessera
