#include "tessera/ops/loss/mean_loss.h"

namespace tessera {

/// How many of the piece's pixels count.
void MeanLoss::piece_statistics(KernelArgs& args) const {
  args.piece_statistics.fill_(sum_over_labels(args, [](int64_t) { return 1.0; }));
}

double MeanLoss::factor(const KernelArgs& args) const {
  const NodeTypes& types = *args.types;
  const double pixels = has_labels(types)
                            ? args.merged_statistics[0].item<double>()
                            : static_cast<double>(Box::whole(types.output.shape()).volume());
  return weight() / (pixels * static_cast<double>(terms_per_pixel(types.inputs[0].channels())));
}

void MeanLoss::forward(KernelArgs& args) const {
  if (args.out_box.empty()) return;
  const PieceTiles tiles(args, ignore_index());
  const double sum = tiles.sum([&](LossTile& tile) { return tile_sum(tile); });
  args.loss.add_(sum * factor(args));
}

void MeanLoss::input_gradient(KernelArgs& args) const {
  if (args.out_box.empty() || !args.grad_inputs[0].tensor.defined()) return;
  const PieceTiles tiles(args, ignore_index());
  tiles.store_gradients(args.grad_inputs[0].tensor, factor(args),
                        [&](LossTile& tile) { tile_gradient(tile); });
}

}  // namespace tessera
