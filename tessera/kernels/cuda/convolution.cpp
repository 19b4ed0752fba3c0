// Convolutions by cuDNN, as ATen calls it, so that the engines are those that ATen finds. It can
// write one product where it belongs, that of a convolution. A transposed one with windows side by
// side is a convolution with the weight mirrored, and so is the gradient of every convolution of
// stride 1: neither takes a pass over an image besides. Only cuDNN's other product, where the
// stride is longer, comes in memory of its own, and one pass takes it to its place and adds the
// bias.

#include "tessera/kernels/convolution.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "tessera/kernels/aten/fine_range.h"
#include "tessera/kernels/aten/tensors.h"
#include "tessera/kernels/cuda/convolution_passes.h"

namespace tessera {
namespace {

using aten::Places;

/// What cuDNN takes from us; float64, signals and the unusual go the way of ATen.
bool goes_to_cudnn(const at::Tensor& image) {
  if ((image.dim() != 4 && image.dim() != 5) || image.numel() == 0) return false;
  if (!at::Context::hasCuDNN() || !at::globalContext().userEnabledCuDNN()) return false;
  return image.scalar_type() == at::kFloat ||
         (image.scalar_type() == at::kBFloat16 &&
          at::detail::getCUDAHooks().supportsBFloat16ConvolutionWithCuDNNv8());
}

cuda::ImageNumber image_number(const at::Tensor& image) {
  return image.scalar_type() == at::kBFloat16 ? cuda::ImageNumber::kBFloat16
                                              : cuda::ImageNumber::kFloat32;
}

/// The padding of all faces alike that says the same as where the fine view begins and ends.
std::optional<Places> equal_padding(const ConvolutionShape& shape, const at::Tensor& fine,
                                    const at::Tensor& weight, const at::Tensor& coarse) {
  Places padding = aten::fine_begin(shape);
  for (size_t axis = 0; axis < padding.size(); ++axis) {
    const int64_t place = 2 + static_cast<int64_t>(axis);
    const int64_t reach = (weight.size(place) - 1) * shape.dilation[axis];
    // Windows that lie in the padding alone are not for cuDNN.
    if (padding[axis] < 0 || padding[axis] > reach) return std::nullopt;
    const int64_t room = fine.size(place) + 2 * padding[axis] - reach - 1;
    if (room < 0 || room / shape.stride[axis] + 1 != coarse.size(place)) return std::nullopt;
  }
  return padding;
}

cuda::WeightShape shape_of_weight(const at::Tensor& weight, int64_t groups) {
  return {.groups = groups,
          .coarse = weight.size(0) / groups,
          .fine = weight.size(1),
          .taps = c10::multiply_integers(weight.sizes().slice(2))};
}

at::MemoryFormat channels_last_of(const at::Tensor& tensor) {
  return tensor.dim() == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
}

/// Room for a weight of `coarse` x `fine` channels and the same taps, channels last.
at::Tensor empty_weight(const at::Tensor& weight, int64_t coarse, int64_t fine,
                        at::ScalarType type) {
  std::vector<int64_t> sizes = weight.sizes().vec();
  sizes[0] = coarse;
  sizes[1] = fine;
  return at::empty(sizes, weight.options().dtype(type).memory_format(channels_last_of(weight)));
}

/// The weight in the images' type and with its channels last.
at::Tensor turned_weight(const at::Tensor& weight, int64_t groups, const at::Tensor& image) {
  const at::Tensor source = weight.contiguous();
  const at::Tensor result =
      empty_weight(weight, weight.size(0), weight.size(1), image.scalar_type());
  cuda::weight_channels_last(shape_of_weight(weight, groups), source.data_ptr<float>(),
                             result.data_ptr(), image_number(image),
                             at::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

/// The same for the product the other way round.
at::Tensor mirrored_weight(const at::Tensor& weight, int64_t groups, const at::Tensor& image) {
  const at::Tensor source = weight.contiguous();
  const at::Tensor result =
      empty_weight(weight, weight.size(1) * groups, weight.size(0) / groups, image.scalar_type());
  cuda::weight_mirrored(shape_of_weight(weight, groups), source.data_ptr<float>(),
                        result.data_ptr(), image_number(image), at::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

/// A transposed convolution of stride 1 as a convolution, which reads the coarse image:
/// fine position q and mirrored tap t meet at coarse position q - reach + t * dilation.
ConvolutionShape mirrored_shape(const ConvolutionShape& shape, const at::Tensor& weight) {
  ConvolutionShape result = shape;
  result.fine_begin = aten::fine_begin(shape);
  for (size_t axis = 0; axis < shape.stride.size(); ++axis)
    result.fine_begin[axis] =
        (weight.size(2 + static_cast<int64_t>(axis)) - 1) * shape.dilation[axis] -
        result.fine_begin[axis];
  return result;
}

bool has_steps_of_one(const ConvolutionShape& shape) {
  return std::all_of(shape.stride.begin(), shape.stride.end(),
                     [](int64_t stride) { return stride == 1; });
}

cuda::ImageSteps steps_of(const at::Tensor& volume) {
  return {.sample = volume.stride(0),
          .slice = volume.stride(2),
          .row = volume.stride(3),
          .pixel = volume.stride(4)};
}

/// target = product + bias. Both may be one tensor.
void place_product(const at::Tensor& product, const at::Tensor& bias, const at::Tensor& target) {
  const bool is_there = product.is_same(target);
  if (is_there && !bias.defined()) return;
  const bool has_pixels_of_channels =
      target.size(1) == 1 || (product.stride(1) == 1 && target.stride(1) == 1);
  if (!has_pixels_of_channels) {
    if (!is_there) target.copy_(product);
    if (bias.defined()) target.add_(aten::along_axis(bias, 1, target.dim()));
    return;
  }
  const at::Tensor from = aten::as_volume(product), to = aten::as_volume(target);
  const at::Tensor biases = bias.defined() ? bias.contiguous() : bias;
  cuda::copy_with_bias({to.size(0), to.size(2), to.size(3), to.size(4), to.size(1)},
                       from.data_ptr(), steps_of(from), to.data_ptr(), steps_of(to),
                       biases.defined() ? biases.data_ptr<float>() : nullptr, image_number(target),
                       at::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool must_be_deterministic(const at::Context& context) {
  return context.deterministicCuDNN() || context.deterministicAlgorithms();
}

/// The convolution of an image with a weight that has been turned.
void put_product(const ConvolutionShape& shape, const at::Tensor& image, const at::Tensor& weight,
                 const at::Tensor& bias, const at::Tensor& target) {
  const std::optional<Places> padding = equal_padding(shape, image, weight, target);
  const at::Tensor read = padding ? image : aten::all_that_is_read(shape, image, weight, target);
  const at::MemoryFormat format = target.suggest_memory_format();
  at::Tensor product = target.is_contiguous(format)
                           ? target
                           : at::empty(target.sizes(), target.options().memory_format(format));
  const at::Context& context = at::globalContext();
  at::cudnn_convolution_out(product, read, weight, padding.value_or(aten::zeros_for(shape)),
                            shape.stride, shape.dilation, shape.groups, context.benchmarkCuDNN(),
                            must_be_deterministic(context), context.allowTF32CuDNN());
  place_product(product, bias, target);
}

}  // namespace

namespace cuda {

void convolve(const ConvolutionShape& shape, const at::Tensor& fine, const at::Tensor& weight,
              const at::Tensor& bias, const at::Tensor& coarse, const at::Tensor& scratch) {
  if (coarse.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(coarse.device());
  if (!goes_to_cudnn(fine))
    return ConvolutionKernels::kAten.convolve(shape, fine, weight, bias, coarse, scratch);
  put_product(shape, fine, turned_weight(weight, shape.groups, fine), bias, coarse);
}

void convolve_transposed(const ConvolutionShape& shape, const at::Tensor& coarse,
                         const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& fine,
                         const at::Tensor& scratch) {
  if (fine.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(fine.device());
  const bool by_cudnn = goes_to_cudnn(coarse);
  if (by_cudnn && has_steps_of_one(shape))
    return put_product(mirrored_shape(shape, weight), coarse,
                       mirrored_weight(weight, shape.groups, coarse), bias, fine);
  const std::optional<Places> padding =
      by_cudnn ? equal_padding(shape, fine, weight, coarse) : std::nullopt;
  if (!padding)
    return ConvolutionKernels::kAten.convolve_transposed(shape, coarse, weight, bias, fine,
                                                         scratch);
  Places rest = aten::reach(shape, weight, coarse);
  for (size_t axis = 0; axis < rest.size(); ++axis)
    rest[axis] = fine.size(2 + static_cast<int64_t>(axis)) + 2 * (*padding)[axis] - rest[axis];
  const at::Context& context = at::globalContext();
  place_product(at::cudnn_convolution_transpose(
                    coarse, turned_weight(weight, shape.groups, coarse), *padding, rest,
                    shape.stride, shape.dilation, shape.groups, context.benchmarkCuDNN(),
                    must_be_deterministic(context), context.allowTF32CuDNN()),
                bias, fine);
}

void add_convolution_weight_gradient(const ConvolutionShape& shape, const at::Tensor& fine,
                                     const at::Tensor& coarse, const at::Tensor& weight_gradient,
                                     const at::Tensor& scratch) {
  if (coarse.numel() == 0 || fine.numel() == 0) return;
  const c10::cuda::CUDAGuard guard(fine.device());
  if (!goes_to_cudnn(fine))
    return ConvolutionKernels::kAten.add_convolution_weight_gradient(shape, fine, coarse,
                                                                     weight_gradient, scratch);
  const std::optional<Places> padding = equal_padding(shape, fine, weight_gradient, coarse);
  // Of the weight ATen looks at the shape, the type and the order of the axes alone.
  const at::Tensor weight = empty_weight(weight_gradient, weight_gradient.size(0),
                                         weight_gradient.size(1), fine.scalar_type());
  const at::Tensor found = std::get<1>(at::convolution_backward(
      coarse, padding ? fine : aten::all_that_is_read(shape, fine, weight_gradient, coarse), weight,
      at::IntArrayRef(weight.size(0)), shape.stride, padding.value_or(aten::zeros_for(shape)),
      shape.dilation, /*transposed=*/false, aten::zeros_for(shape), shape.groups,
      {false, true, false}));
  if (!found.is_contiguous(channels_last_of(found)) || !weight_gradient.is_contiguous()) {
    weight_gradient.add_(found);
    return;
  }
  cuda::add_weight_gradient(shape_of_weight(found, shape.groups), found.data_ptr(),
                            image_number(found), weight_gradient.data_ptr<float>(),
                            at::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace cuda

namespace {

constexpr ConvolutionKernels kConvolutionByCudnn{
    .convolve = cuda::convolve,
    .convolve_transposed = cuda::convolve_transposed,
    .add_convolution_weight_gradient = cuda::add_convolution_weight_gradient};

}  // namespace

const ConvolutionKernels* const ConvolutionKernels::kCuda = &kConvolutionByCudnn;

}  // namespace tessera
