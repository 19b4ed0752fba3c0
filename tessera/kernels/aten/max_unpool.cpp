#include <ranges>

#include "tessera/kernels/aten/tap_slices.h"
#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

/// Where the chosen taps lie in the plane of a box, -1: outside of it.
at::Tensor places_in(const PoolPiece& piece, const std::array<Range, 3>& box,
                     const at::Tensor& choices) {
  at::Tensor taps = choices.to(at::kLong), place = at::zeros_like(taps);
  at::Tensor outside = at::zeros(taps.sizes(), taps.options().dtype(at::kBool));
  int64_t step = 1;
  for (int axis = 2; axis >= 0; --axis) {
    const PoolAxis& along = piece[axis];
    const at::Tensor first_taps =
        aten::count_up(along.out.begin, along.out.end, taps) * along.stride - along.padding;
    const at::Tensor position =
        at::remainder(taps, along.kernel) * along.dilation +
        aten::along_axis(first_taps - box[axis].begin, 2 + axis, taps.dim());
    outside.logical_or_(position < 0).logical_or_(position >= box[axis].size());
    place.add_(position, step);
    step *= box[axis].size();
    taps = at::div(taps, along.kernel, "floor");
  }
  return place.masked_fill_(outside, -1);
}

}  // namespace

namespace aten {

/// Where windows share a maximum the last of them has its value there, so taps are visited from the
/// last to the first.
void unpool_maxima(const PoolPiece& piece, const std::array<Range, 3>& box,
                   const at::Tensor& values, const at::Tensor& x, const at::Tensor& y,
                   const at::Tensor& places) {
  y.zero_();
  if (values.numel() == 0) return;
  const at::Tensor from = as_volume(values), to = as_volume(y);
  const at::Tensor choices = choose_taps(piece, as_volume(x), at::empty(from.sizes(), x.options()));
  places.copy_(places_in(piece, box, choices).flatten());
  for (const TapSlice& tap : tap_slices(piece, box) | std::views::reverse) {
    const at::Tensor target = tap.inputs_of(to);
    target.copy_(at::where(tap.outputs_of(choices) == tap.index, tap.outputs_of(from), target));
  }
}

void unpool_maxima_gradient(const PoolPiece&, const at::Tensor& grad_y, const at::Tensor& places,
                            const at::Tensor& grad_values) {
  if (grad_values.numel() == 0) return;
  const at::Tensor place =
      places.to(at::kLong).view({grad_values.size(0), grad_values.size(1), -1});
  const at::Tensor taken = grad_y.flatten(2).gather(2, place.clamp_min(0));
  grad_values.copy_(taken.masked_fill_(place < 0, 0).view(grad_values.sizes()));
}

}  // namespace aten

const MaxUnpoolKernels MaxUnpoolKernels::kAten{
    .unpool_maxima = aten::unpool_maxima, .unpool_maxima_gradient = aten::unpool_maxima_gradient};

}  // namespace tessera
