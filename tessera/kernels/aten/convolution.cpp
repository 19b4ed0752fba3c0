#include "tessera/kernels/convolution.h"

#include <tuple>

#include "tessera/kernels/aten/fine_range.h"
#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

/// Weights and biases of bf16 images lie in float32.
at::Tensor rounded_as(const at::Tensor& image, const at::Tensor& numbers) {
  return numbers.defined() ? numbers.to(image.scalar_type()) : numbers;
}

}  // namespace

namespace aten {

void convolve(const ConvolutionShape& shape, const at::Tensor& fine, const at::Tensor& weight,
              const at::Tensor& bias, const at::Tensor& coarse, const at::Tensor&) {
  if (coarse.numel() == 0) return;
  coarse.copy_(at::convolution(all_that_is_read(shape, fine, weight, coarse),
                               rounded_as(fine, weight), rounded_as(fine, bias), shape.stride,
                               zeros_for(shape), shape.dilation,
                               /*transposed=*/false, zeros_for(shape), shape.groups));
}

void convolve_transposed(const ConvolutionShape& shape, const at::Tensor& coarse,
                         const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& fine,
                         const at::Tensor&) {
  if (fine.numel() == 0) return;
  if (coarse.numel() == 0) {
    fine.zero_();
  } else {
    const at::Tensor product = at::convolution(coarse, rounded_as(coarse, weight), {}, shape.stride,
                                               zeros_for(shape), shape.dilation,
                                               /*transposed=*/true, zeros_for(shape), shape.groups);
    const Places begin = fine_begin(shape);
    Places end;
    for (size_t axis = 0; axis < begin.size(); ++axis)
      end.push_back(begin[axis] + fine.size(2 + static_cast<int64_t>(axis)));
    fine.copy_(refit(product, zeros_for(shape), begin, end));
  }
  if (bias.defined()) fine.add_(along_axis(bias, 1, fine.dim()));
}

void add_convolution_weight_gradient(const ConvolutionShape& shape, const at::Tensor& fine,
                                     const at::Tensor& coarse, const at::Tensor& weight_gradient,
                                     const at::Tensor&) {
  if (coarse.numel() == 0 || fine.numel() == 0) return;
  weight_gradient.add_(std::get<1>(at::convolution_backward(
      coarse, all_that_is_read(shape, fine, weight_gradient, coarse),
      rounded_as(fine, weight_gradient), at::IntArrayRef(weight_gradient.size(0)), shape.stride,
      zeros_for(shape), shape.dilation,
      /*transposed=*/false, zeros_for(shape), shape.groups, {false, true, false})));
}

}  // namespace aten

const ConvolutionKernels ConvolutionKernels::kAten{
    .convolve = aten::convolve,
    .convolve_transposed = aten::convolve_transposed,
    .add_convolution_weight_gradient = aten::add_convolution_weight_gradient};

}  // namespace tessera
