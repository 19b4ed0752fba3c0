#include "tessera/kernels/convolution.h"

#include <tuple>

#include "tessera/geometry/range.h"
#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

using Places = std::vector<int64_t>;

Places zeros_for(const ConvolutionShape& shape) { return Places(shape.stride.size(), 0); }

Places fine_begin(const ConvolutionShape& shape) {
  return shape.fine_begin.empty() ? zeros_for(shape) : shape.fine_begin;
}

/// Of `image`, which begins at `begin` of an axis, the range from `to_begin` to `to_end`: cut, and
/// zeros where the image is not.
at::Tensor refit(const at::Tensor& image, const Places& begin, const Places& to_begin,
                 const Places& to_end) {
  at::Tensor part = image;
  std::vector<int64_t> padding;
  bool is_padded = false;
  for (int64_t axis = std::ssize(begin) - 1; axis >= 0; --axis) {
    const Range held{begin[axis], begin[axis] + image.size(2 + axis)};
    const Range wanted{to_begin[axis], to_end[axis]};
    Range both = intersect(held, wanted);
    if (both.empty()) both = {wanted.begin, wanted.begin};
    part = part.narrow(2 + axis, both.empty() ? 0 : both.begin - held.begin, both.size());
    padding.push_back(both.begin - wanted.begin);
    padding.push_back(wanted.end - both.end);
    is_padded = is_padded || both != wanted;
  }
  return is_padded ? at::constant_pad_nd(part, padding) : part;
}

/// How far the windows of all coarse positions reach into the fine image.
Places reach(const ConvolutionShape& shape, const at::Tensor& weight, const at::Tensor& coarse) {
  Places ends;
  for (int64_t axis = 0; axis < std::ssize(shape.stride); ++axis)
    ends.push_back((coarse.size(2 + axis) - 1) * shape.stride[axis] +
                   (weight.size(2 + axis) - 1) * shape.dilation[axis] + 1);
  return ends;
}

at::Tensor all_that_is_read(const ConvolutionShape& shape, const at::Tensor& fine,
                            const at::Tensor& weight, const at::Tensor& coarse) {
  return refit(fine, fine_begin(shape), zeros_for(shape), reach(shape, weight, coarse));
}

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
