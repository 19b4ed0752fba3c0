#pragma once
// The same three kernels (kernels/convolution.h) by LibTorch's convolutions, for programs that are
// compiled for a machine without wide registers: the library looks at the machine when it runs.

#include "tessera/kernels/convolution.h"
#include "tessera/kernels/cpu/vector.h"

namespace tessera {

constexpr bool kLibraryIsFaster = kVectorBytes < 32;

void convolve_by_library(const ConvolutionShape& shape, const at::Tensor& fine,
                         const at::Tensor& weight, const at::Tensor& bias,
                         const at::Tensor& coarse);

void convolve_transposed_by_library(const ConvolutionShape& shape, const at::Tensor& coarse,
                                    const at::Tensor& weight, const at::Tensor& bias,
                                    const at::Tensor& fine);

void add_weight_gradient_by_library(const ConvolutionShape& shape, const at::Tensor& fine,
                                    const at::Tensor& coarse, const at::Tensor& weight_gradient);

}  // namespace tessera
