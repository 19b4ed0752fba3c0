#include "tessera/kernels/optimise.h"

namespace tessera {

namespace aten {

double sum_of_squares(const at::Tensor& gradient) {
  return gradient.to(at::kDouble).square().sum().item<double>();
}

}  // namespace aten

const SquareKernels SquareKernels::kAten{.sum_of_squares = aten::sum_of_squares};

}  // namespace tessera
