#include "tessera/kernels/prelu.h"

#include "tessera/kernels/aten/tensors.h"

namespace tessera {

namespace aten {

void apply_slopes(const at::Tensor& x, const at::Tensor& value, const at::Tensor& slopes,
                  const at::Tensor& out) {
  out.copy_(at::where(x > 0, value, along_axis(slopes, 1, x.dim()) * value));
}

at::Tensor slope_gradients(const at::Tensor& x, const at::Tensor& grad_y) {
  return (x.to(at::kDouble) * grad_y).masked_fill_(x > 0, 0).sum(axes_of_sums(x));
}

}  // namespace aten

const PreluKernels PreluKernels::kAten{.apply_slopes = aten::apply_slopes,
                                       .slope_gradients = aten::slope_gradients};

}  // namespace tessera
