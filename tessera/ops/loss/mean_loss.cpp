#include "tessera/ops/loss/mean_loss.h"

namespace tessera {

/// How many of the piece's pixels count.
void MeanLoss::piece_statistics(KernelArgs& args) const {
  args.piece_statistics.copy_(sum_over_labels(args));
}

at::Tensor MeanLoss::factor(const KernelArgs& args) const {
  const NodeTypes& types = *args.types;
  const double per_pixel =
      weight() / static_cast<double>(terms_per_pixel(types.inputs[0].channels()));
  if (has_labels(types)) return per_pixel / args.merged_statistics[0];
  const auto pixels = static_cast<double>(Box::whole(types.output.shape()).volume());
  return at::scalar_tensor(per_pixel / pixels, args.inputs[0].tensor.options().dtype(at::kDouble));
}

void MeanLoss::forward(KernelArgs& args) const {
  if (args.out_box.empty()) return;
  args.loss.add_(loss_sum(element_loss(), operands(args)) * factor(args));
}

void MeanLoss::input_gradient(KernelArgs& args) const {
  if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
  loss_gradient(element_loss(), factor(args), operands(args), args.grad_inputs[0].tensor);
}

}  // namespace tessera
