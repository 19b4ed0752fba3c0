#include "tessera/kernels/differences.h"

#include "tessera/kernels/aten/moments_over.h"

namespace tessera {
namespace {

/// Prediction minus target in float64, samples x elements.
at::Tensor differences_of(const LossOperands& operands) {
  return (operands.scores.to(at::kDouble) - operands.target.to(at::kDouble)).flatten(1);
}

}  // namespace

namespace aten {

void difference_moments(const LossOperands& operands, const at::Tensor& moments) {
  moments.copy_(moments_over(differences_of(operands), {1}));
}

void centred_difference(const LossOperands& operands, double factor, const at::Tensor& means,
                        const at::Tensor& gradient) {
  const at::Tensor centred = differences_of(operands) - means.unsqueeze(1);
  gradient.copy_((centred * factor).view(gradient.sizes()));
}

}  // namespace aten

const DifferenceKernels DifferenceKernels::kAten{.difference_moments = aten::difference_moments,
                                                 .centred_difference = aten::centred_difference};

}  // namespace tessera
