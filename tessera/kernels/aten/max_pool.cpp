#include <limits>
#include <ranges>

#include "tessera/kernels/aten/tap_slices.h"
#include "tessera/kernels/aten/tensors.h"

namespace tessera {

namespace aten {

at::Tensor choose_taps(const PoolPiece& piece, const at::Tensor& x, at::Tensor best) {
  constexpr int64_t kNone = -1;
  best.fill_(-std::numeric_limits<double>::infinity());
  const at::Tensor choices = at::full(best.sizes(), kNone, best.options().dtype(at::kInt));
  for (const TapSlice& tap : tap_slices(piece, input_box(piece))) {
    const at::Tensor value = tap.inputs_of(x), choice = tap.outputs_of(choices);
    at::Tensor best_yet = tap.outputs_of(best);
    const at::Tensor wins =
        (value > best_yet).logical_or_(value.isnan()).logical_or_(choice == kNone);
    best_yet.copy_(at::where(wins, value, best_yet));
    choice.masked_fill_(wins, tap.index);
  }
  return choices;
}

void pool_maxima(const PoolPiece& piece, const at::Tensor& x, const at::Tensor& y,
                 const at::Tensor& choices) {
  choices.copy_(choose_taps(piece, as_volume(x), as_volume(y)).flatten());
}

/// Taps are visited from the last to the first: then what windows add to an input comes in the
/// order of the windows.
void pool_maxima_gradient(const PoolPiece& piece, const at::Tensor& grad_y,
                          const at::Tensor& choices, const at::Tensor& grad_x) {
  const at::Tensor dy = as_volume(grad_y), dx = as_volume(grad_x);
  const at::Tensor choice = choices.view(dy.sizes());
  const at::Tensor sums = zeros_of_sums(dx);
  for (const TapSlice& tap : tap_slices(piece, input_box(piece)) | std::views::reverse)
    tap.inputs_of(sums).add_(
        tap.outputs_of(dy).masked_fill(tap.outputs_of(choice) != tap.index, 0));
  dx.copy_(sums);
}

}  // namespace aten

const MaxPoolKernels MaxPoolKernels::kAten{.pool_maxima = aten::pool_maxima,
                                           .pool_maxima_gradient = aten::pool_maxima_gradient};

}  // namespace tessera
