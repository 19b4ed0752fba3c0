#include "tessera/kernels/space_sum.h"

#include "tessera/kernels/aten/tensors.h"

namespace tessera {

namespace aten {

void sum_space(const at::Tensor& x, double scale, const at::Tensor& sums) {
  sums.copy_(at::sum(x, space_axes(x), /*keepdim=*/false, at::kDouble).mul_(scale));
}

}  // namespace aten

const SpaceSumKernels SpaceSumKernels::kAten{.sum_space = aten::sum_space};

}  // namespace tessera
