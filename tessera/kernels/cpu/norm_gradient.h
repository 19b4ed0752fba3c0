#pragma once
// The backward half of kernels/norm.h, for its table.

#include "tessera/kernels/norm.h"

namespace tessera::cpu {

void plane_gradient_sums(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                         const PlaneNorm& norm, const at::Tensor& sum_dy,
                         const at::Tensor& sum_dy_xhat);

void normalise_gradient(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                        const PlaneNorm& norm, const at::Tensor& mean_dxhat,
                        const at::Tensor& mean_dxhat_xhat, const at::Tensor& grad_x,
                        const at::Tensor& grad_added);

}  // namespace tessera::cpu
