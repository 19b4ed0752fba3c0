#include <ranges>

#include "tessera/kernels/aten/tap_slices.h"
#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

/// How many of the first taps of windows that begin at `begin` lie before `end`.
at::Tensor taps_before(const PoolAxis& axis, int64_t end, const at::Tensor& begin) {
  return at::div(end - begin + (axis.dilation - 1), axis.dilation, "floor").clamp_(0, axis.kernel);
}

/// What the sums of windows count along one axis. PyTorch counts padding, but not what ceil mode
/// reads beyond it.
at::Tensor elements_along(const PoolAxis& axis, bool count_padding, const at::Tensor& beside) {
  const at::Tensor begin =
      aten::count_up(axis.out.begin, axis.out.end, beside) * axis.stride - axis.padding;
  if (!count_padding)
    return taps_before(axis, axis.input_size, begin) - taps_before(axis, 0, begin);
  return at::clamp_max(begin + axis.kernel, axis.input_size + axis.padding) - begin;
}

/// Of an image with five axes.
at::Tensor divided(const at::Tensor& image, const PoolPiece& piece, const PoolDivisor& divisor) {
  if (divisor.override_ > 0) return image / divisor.override_;
  at::Tensor elements;
  for (int axis = 0; axis < 3; ++axis) {
    const at::Tensor along = aten::along_axis(
        elements_along(piece[axis], divisor.count_include_pad, image), 2 + axis, image.dim());
    elements = elements.defined() ? elements * along : along;
  }
  return image / elements.to(image.scalar_type());
}

}  // namespace

namespace aten {

void pool_averages(const PoolPiece& piece, const PoolDivisor& divisor, const at::Tensor& x,
                   const at::Tensor& y) {
  const at::Tensor in = as_volume(x), out = as_volume(y);
  const at::Tensor sums = zeros_of_sums(out);
  for (const TapSlice& tap : tap_slices(piece, input_box(piece)))
    tap.outputs_of(sums).add_(tap.inputs_of(in));
  out.copy_(divided(sums, piece, divisor));
}

void pool_averages_gradient(const PoolPiece& piece, const PoolDivisor& divisor,
                            const at::Tensor& grad_y, const at::Tensor& grad_x) {
  const at::Tensor dx = as_volume(grad_x), sums = zeros_of_sums(dx);
  const at::Tensor shares = divided(as_volume(grad_y).to(sums.scalar_type()), piece, divisor);
  for (const TapSlice& tap : tap_slices(piece, input_box(piece)) | std::views::reverse)
    tap.inputs_of(sums).add_(tap.outputs_of(shares));
  dx.copy_(sums);
}

}  // namespace aten

const AveragePoolKernels AveragePoolKernels::kAten{
    .pool_averages = aten::pool_averages, .pool_averages_gradient = aten::pool_averages_gradient};

}  // namespace tessera
