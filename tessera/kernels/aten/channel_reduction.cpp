#include "tessera/kernels/channel_reduction.h"

#include <tuple>

#include "tessera/kernels/aten/tensors.h"

namespace tessera {

namespace aten {

/// In an order of additions that does not depend on strides.
void sum_channels(const at::Tensor& x, double divisor, const at::Tensor& y) {
  y.copy_(x.to(at::kDouble).contiguous().sum(1, /*keepdim=*/true).div_(divisor));
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
