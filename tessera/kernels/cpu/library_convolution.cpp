#include "tessera/kernels/cpu/library_convolution.h"

#include <tuple>

namespace tessera {
namespace {

std::vector<int64_t> no_padding(const ConvolutionShape& shape) {
  return std::vector<int64_t>(shape.stride.size(), 0);
}

/// Of `image`, which begins at `begin` of an axis, the range [to_begin, to_end): cut, and zeros
/// where the image is not.
at::Tensor refit(const at::Tensor& image, const std::vector<int64_t>& begin,
                 const std::vector<int64_t>& to_begin, const std::vector<int64_t>& to_end) {
  std::vector<int64_t> padding;
  for (int64_t axis = std::ssize(begin) - 1; axis >= 0; --axis) {
    padding.push_back(begin[axis] - to_begin[axis]);
    padding.push_back(to_end[axis] - begin[axis] - image.size(2 + axis));
  }
  return at::constant_pad_nd(image, padding);
}

/// How far the windows of all coarse positions reach into the fine image.
std::vector<int64_t> reach(const ConvolutionShape& shape, const at::Tensor& weight,
                           const at::Tensor& coarse) {
  std::vector<int64_t> ends;
  for (int64_t axis = 0; axis < std::ssize(shape.stride); ++axis)
    ends.push_back((coarse.size(2 + axis) - 1) * shape.stride[axis] +
                   (weight.size(2 + axis) - 1) * shape.dilation[axis] + 1);
  return ends;
}

std::vector<int64_t> fine_begin(const ConvolutionShape& shape) {
  return shape.fine_begin.empty() ? no_padding(shape) : shape.fine_begin;
}

at::Tensor all_that_is_read(const ConvolutionShape& shape, const at::Tensor& fine,
                            const at::Tensor& weight, const at::Tensor& coarse) {
  return refit(fine, fine_begin(shape), no_padding(shape), reach(shape, weight, coarse));
}

}  // namespace

void convolve_by_library(const ConvolutionShape& shape, const at::Tensor& fine,
                         const at::Tensor& weight, const at::Tensor& bias,
                         const at::Tensor& coarse) {
  coarse.copy_(at::convolution(all_that_is_read(shape, fine, weight, coarse), weight, bias,
                               shape.stride, no_padding(shape), shape.dilation,
                               /*transposed=*/false, no_padding(shape), shape.groups));
}

void convolve_transposed_by_library(const ConvolutionShape& shape, const at::Tensor& coarse,
                                    const at::Tensor& weight, const at::Tensor& bias,
                                    const at::Tensor& fine) {
  const at::Tensor product =
      at::convolution(coarse, weight, {}, shape.stride, no_padding(shape), shape.dilation,
                      /*transposed=*/true, no_padding(shape), shape.groups);
  const std::vector<int64_t> begin = fine_begin(shape);
  std::vector<int64_t> end;
  for (size_t axis = 0; axis < begin.size(); ++axis)
    end.push_back(begin[axis] + fine.size(2 + static_cast<int64_t>(axis)));
  fine.copy_(refit(product, no_padding(shape), begin, end));
  if (!bias.defined()) return;
  std::vector<int64_t> per_channel(fine.dim(), 1);
  per_channel[1] = bias.numel();
  fine.add_(bias.view(per_channel));
}

void add_weight_gradient_by_library(const ConvolutionShape& shape, const at::Tensor& fine,
                                    const at::Tensor& coarse, const at::Tensor& weight_gradient) {
  weight_gradient.add_(std::get<1>(at::convolution_backward(
      coarse, all_that_is_read(shape, fine, weight_gradient, coarse), weight_gradient,
      at::IntArrayRef(weight_gradient.size(0)), shape.stride, no_padding(shape), shape.dilation,
      /*transposed=*/false, no_padding(shape), shape.groups, {false, true, false})));
}

}  // namespace tessera
