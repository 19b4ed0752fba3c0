#include "tessera/kernels/optimise.h"

namespace tessera {

namespace aten {

void sum_of_squares(const at::Tensor& gradient, const at::Tensor& sum) {
  sum.copy_(gradient.to(at::kDouble).square().sum());
}

/// The host never learns the factor. Multiplying by 1 changes no bit.
void clip_gradients(const at::Tensor& squares, double max_norm, const at::Tensor& norm,
                    const std::vector<at::Tensor>& buckets) {
  norm.copy_(squares.sum().sqrt());
  if (max_norm <= 0) return;
  const at::Tensor factor =
      at::where(norm.isfinite(), (max_norm / (norm + 1e-6)).clamp_max(1), at::ones_like(norm));
  for (const at::Tensor& bucket : buckets) bucket.mul_(factor.to(bucket.scalar_type()));
}

}  // namespace aten

const NormOfGradientsKernels NormOfGradientsKernels::kAten{.sum_of_squares = aten::sum_of_squares,
                                                           .clip_gradients = aten::clip_gradients};

}  // namespace tessera
