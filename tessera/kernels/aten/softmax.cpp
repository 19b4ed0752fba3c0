#include "tessera/kernels/softmax.h"

namespace tessera {

namespace aten {

void softmax_channels(SoftmaxForm form, const at::Tensor& x, const at::Tensor& y) {
  y.copy_(form == SoftmaxForm::kSoftmax ? at::softmax(x, 1) : at::log_softmax(x, 1));
}

/// Some versions of the library's functions take views for dense.
void softmax_channels_gradient(SoftmaxForm form, const at::Tensor& y, const at::Tensor& grad_y,
                               const at::Tensor& grad_x) {
  const at::Tensor out = y.contiguous(), dy = grad_y.contiguous();
  grad_x.copy_(form == SoftmaxForm::kSoftmax
                   ? at::_softmax_backward_data(dy, out, 1, y.scalar_type())
                   : at::_log_softmax_backward_data(dy, out, 1, y.scalar_type()));
}

}  // namespace aten

const SoftmaxKernels SoftmaxKernels::kAten{
    .softmax_channels = aten::softmax_channels,
    .softmax_channels_gradient = aten::softmax_channels_gradient};

}  // namespace tessera
