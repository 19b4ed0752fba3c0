#pragma once
// The backward half of kernels/norm.h, for its table.

#include "tessera/kernels/norm.h"

namespace tessera::cpu {

void plane_gradient_sums(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                         const PlaneNorm& norm, std::span<double> sum_dy,
                         std::span<double> sum_dy_xhat);

void normalise_gradient(const at::Tensor& x, const at::Tensor& y, const at::Tensor& grad_y,
                        const PlaneNorm& norm, std::span<const double> mean_dxhat,
                        std::span<const double> mean_dxhat_xhat, const at::Tensor& grad_x,
                        const at::Tensor& grad_added);

}  // namespace tessera::cpu
