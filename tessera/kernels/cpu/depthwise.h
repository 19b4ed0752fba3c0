#pragma once
// Convolutions whose groups have so few channels that there is no product of matrices to make
// (depthwise ones, and those with a channel multiplier): an output plane is a sum of shifted input
// planes. Arguments as those of kernels/convolution.h; no scratch.

#include "tessera/kernels/convolution.h"

namespace tessera {

/// Whether the channels of a group are that few. The weight's shape is as in convolution.h.
bool has_thin_groups(at::IntArrayRef weight_shape, int64_t groups);

void convolve_depthwise(const ConvolutionShape& shape, const at::Tensor& fine,
                        const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& coarse);

void convolve_depthwise_transposed(const ConvolutionShape& shape, const at::Tensor& coarse,
                                   const at::Tensor& weight, const at::Tensor& bias,
                                   const at::Tensor& fine);

void add_depthwise_weight_gradient(const ConvolutionShape& shape, const at::Tensor& fine,
                                   const at::Tensor& coarse, const at::Tensor& weight_gradient);

}  // namespace tessera
