#include "tessera/kernels/cpu/depthwise.h"

#include <ATen/Dispatch.h>

#include "tessera/kernels/cpu/depthwise_plan.h"
#include "tessera/kernels/cpu/depthwise_rows.h"
#include "tessera/kernels/cpu/depthwise_rows_gradient.h"
#include "tessera/kernels/cpu/depthwise_small.h"
#include "tessera/kernels/cpu/strided_tensor.h"

namespace tessera {
namespace {

/// Numbers of a kernel.
int64_t kernel_size(const at::Tensor& weight) {
  return c10::multiply_integers(weight.sizes().slice(2));
}

/// From the fine image's channels to the coarse one's.
template <class T>
ThinGroups<T> groups_to_coarse(const ConvolutionShape& shape, const at::Tensor& weight) {
  const int64_t taps = kernel_size(weight), fine = weight.size(1);
  return {weight.data_ptr<T>(), fine, weight.size(0) / shape.groups,
          fine * taps,          taps, weight.size(0)};
}

template <class T>
ThinGroups<T> groups_to_fine(const ConvolutionShape& shape, const at::Tensor& weight) {
  const int64_t taps = kernel_size(weight), fine = weight.size(1);
  return {weight.data_ptr<T>(), weight.size(0) / shape.groups, fine, taps, fine * taps,
          fine * shape.groups};
}

DepthwisePlan forward_plan(const ConvolutionShape& shape, const at::Tensor& weight,
                           const at::Tensor& coarse) {
  return plan_over_fine(last_axes(weight.sizes().slice(2), 1), last_axes(shape.stride, 1),
                        last_axes(shape.dilation, 1), last_axes(shape.fine_begin, 0),
                        last_axes(coarse.sizes().slice(2), 1));
}

/// By whichever way is faster for planes of this size.
template <class T>
void sum_planes(DepthwisePlan plan, const at::Tensor& in, const ThinGroups<T>& groups,
                const at::Tensor& bias, const at::Tensor& out) {
  const auto image = image_of<const T>(in);
  const LaneInput<T> lanes(plan, image, groups);
  if (prefers_lanes(plan, lanes, groups))
    return DepthwiseLaneSum<T>(plan, lanes, groups, pointer_or_null<T>(bias), image_of<T>(out))
        .run();
  cut_into_bands(plan, groups.in, sizeof(T));
  DepthwiseSum<T>(plan, image, groups, pointer_or_null<T>(bias), image_of<T>(out)).run();
}

}  // namespace

bool has_thin_groups(at::IntArrayRef weight_shape, int64_t groups) {
  constexpr int64_t kLeastProducts = 16;  // of a group's channels on both sides
  return groups > 1 && weight_shape[0] / groups * weight_shape[1] < kLeastProducts;
}

void convolve_depthwise(const ConvolutionShape& shape, const at::Tensor& fine,
                        const at::Tensor& weight, const at::Tensor& bias,
                        const at::Tensor& coarse) {
  AT_DISPATCH_FLOATING_TYPES(fine.scalar_type(), "convolve_depthwise", [&] {
    sum_planes<scalar_t>(forward_plan(shape, weight, coarse), fine,
                         groups_to_coarse<scalar_t>(shape, weight), bias, coarse);
  });
}

void convolve_depthwise_transposed(const ConvolutionShape& shape, const at::Tensor& coarse,
                                   const at::Tensor& weight, const at::Tensor& bias,
                                   const at::Tensor& fine) {
  const DepthwisePlan plan =
      plan_over_coarse(last_axes(weight.sizes().slice(2), 1), last_axes(shape.stride, 1),
                       last_axes(shape.dilation, 1), last_axes(shape.fine_begin, 0),
                       last_axes(fine.sizes().slice(2), 1));
  AT_DISPATCH_FLOATING_TYPES(fine.scalar_type(), "convolve_depthwise_transposed", [&] {
    sum_planes<scalar_t>(plan, coarse, groups_to_fine<scalar_t>(shape, weight), bias, fine);
  });
}

void add_depthwise_weight_gradient(const ConvolutionShape& shape, const at::Tensor& fine,
                                   const at::Tensor& coarse, const at::Tensor& weight_gradient) {
  DepthwisePlan plan = forward_plan(shape, weight_gradient, coarse);
  AT_DISPATCH_FLOATING_TYPES(fine.scalar_type(), "depthwise_weight_gradient", [&] {
    const auto in = image_of<const scalar_t>(fine), out = image_of<const scalar_t>(coarse);
    const auto groups = groups_to_coarse<scalar_t>(shape, weight_gradient);
    scalar_t* const gradient = weight_gradient.data_ptr<scalar_t>();
    const LaneInput<scalar_t> lanes(plan, in, groups);
    if (prefers_lanes(plan, lanes, groups))
      return DepthwiseLaneGradient<scalar_t>(plan, lanes, out, groups, gradient).run();
    cut_into_bands(plan, 2, sizeof(scalar_t));
    DepthwiseGradient<scalar_t>(plan, in, out, groups, gradient).run();
  });
}

}  // namespace tessera
