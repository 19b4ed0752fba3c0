#include "tessera/kernels/linear.h"

namespace tessera {

namespace aten {

void linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const at::Tensor& y) {
  at::Tensor product = y;
  if (bias.defined())
    at::addmm_out(product, bias, x, weight.t());
  else
    at::mm_out(product, x, weight.t());
}

void linear_input_gradient(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& dx) {
  at::Tensor product = dx;
  at::mm_out(product, dy, weight);
}

void add_linear_weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                                const at::Tensor& weight_gradient) {
  weight_gradient.addmm_(dy.t(), x);
}

}  // namespace aten

const LinearKernels LinearKernels::kAten{
    .linear_product = aten::linear_product,
    .linear_input_gradient = aten::linear_input_gradient,
    .add_linear_weight_gradient = aten::add_linear_weight_gradient};

}  // namespace tessera
