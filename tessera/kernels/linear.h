#pragma once
// Linear layers on rows of features: products with a weight that is often larger than everything
// else and read once, with few rows. So the weight is read and written where it lies, in its order,
// by all threads.
//
// Tensors are matrices of float32 or float64 with any strides; those whose rows do not lie
// contiguously are copied. A sum has the same bits for any number of threads.

#include <ATen/ATen.h>

#include "tessera/kernels/kernel.h"

namespace tessera {

struct LinearKernels {
  /// y[n, k] = bias[k] + Σ x[n, c] weight[k, c]; the bias may be undefined.
  void (*linear_product)(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         const at::Tensor& y);
  /// dx[n, c] = Σ dy[n, k] weight[k, c].
  void (*linear_input_gradient)(const at::Tensor& dy, const at::Tensor& weight,
                                const at::Tensor& dx);
  /// Adds Σ dy[n, k] x[n, c] to weight_gradient[k, c].
  void (*add_linear_weight_gradient)(const at::Tensor& x, const at::Tensor& dy,
                                     const at::Tensor& weight_gradient);

  static const LinearKernels kCpu;
  static const LinearKernels kAten;
};
inline constexpr Kernel<&LinearKernels::linear_product> linear_product;
inline constexpr Kernel<&LinearKernels::linear_input_gradient> linear_input_gradient;
inline constexpr Kernel<&LinearKernels::add_linear_weight_gradient> add_linear_weight_gradient;

}  // namespace tessera
