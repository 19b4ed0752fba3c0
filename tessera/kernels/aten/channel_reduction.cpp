#include "tessera/kernels/channel_reduction.h"

#include <tuple>

#include "tessera/kernels/aten/tensors.h"

namespace tessera {

namespace aten {

/// By halves: the library's sums take an order that depends on where the numbers lie.
void sum_channels(const at::Tensor& x, double divisor, const at::Tensor& y) {
  at::Tensor sums = x.to(at::kDouble);
  while (sums.size(1) > 1) {
    const int64_t pairs = sums.size(1) / 2;
    const at::Tensor of_pairs = sums.narrow(1, 0, pairs) + sums.narrow(1, pairs, pairs);
    sums = at::cat({of_pairs, sums.slice(1, 2 * pairs)}, 1);
  }
  y.copy_(sums / divisor);
}

void channel_maxima(const at::Tensor& x, const at::Tensor& y, const at::Tensor& choices) {
  const auto [best, channel] = at::max(x, 1, /*keepdim=*/true);
  y.copy_(best);
  choices.copy_(channel.flatten());
}

void channel_maxima_gradient(const at::Tensor& grad_y, const at::Tensor& choices,
                             const at::Tensor& grad_x) {
  const at::Tensor channel = along_axis(count_up(0, grad_x.size(1), grad_x), 1, grad_x.dim());
  grad_x.copy_(at::where(channel == choices.view(grad_y.sizes()), grad_y,
                         at::scalar_tensor(0, grad_y.options())));
}

}  // namespace aten

const ChannelReductionKernels ChannelReductionKernels::kAten{
    .sum_channels = aten::sum_channels,
    .channel_maxima = aten::channel_maxima,
    .channel_maxima_gradient = aten::channel_maxima_gradient};

}  // namespace tessera
