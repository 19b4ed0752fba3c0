#include "tessera/kernels/norm_statistics.h"

#include "tessera/kernels/moments.h"

namespace tessera {

namespace aten {

void mean_and_inverse_std(const at::Tensor& moments, double epsilon, const at::Tensor& mean,
                          const at::Tensor& inverse_std) {
  mean.copy_(means_in(moments));
  at::Tensor result = inverse_std;
  at::div_out(result, squares_in(moments), counts_in(moments));
  result.add_(epsilon).sqrt_().reciprocal_();
}

void update_running_moments(const at::Tensor& moments, double momentum,
                            const at::Tensor& running_mean, const at::Tensor& running_variance) {
  const auto update = [&](const at::Tensor& running, const at::Tensor& now) {
    running.copy_(running.to(at::kDouble) * (1 - momentum) + now * momentum);
  };
  update(running_mean, means_in(moments));
  update(running_variance, squares_in(moments) / (counts_in(moments) - 1));
}

void gradient_means(const at::Tensor& sums, double count, const at::Tensor& weight,
                    const at::Tensor& means) {
  means.copy_(weight.defined() ? sums / count * weight : sums / count);
}

}  // namespace aten

const NormStatisticsKernels NormStatisticsKernels::kAten{
    .mean_and_inverse_std = aten::mean_and_inverse_std,
    .update_running_moments = aten::update_running_moments,
    .gradient_means = aten::gradient_means};

}  // namespace tessera
