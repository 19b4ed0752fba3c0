#include <array>

#include "tessera/kernels/cpu/logistic.h"
#include "tessera/kernels/cpu/loss_tiles.h"
#include "tessera/kernels/loss.h"

namespace tessera {
namespace {

using Activation = DiceTerms::Activation;

/// Sums over pixels of one class: p t, p + t (or p² + t²), 1.
using Overlap = std::array<double, 3>;

/// Turns scores into probabilities, in place.
void apply_activation(Activation activation, LossTile& tile) {
  if (activation == Activation::kSigmoid)
    for (double& score : tile.scores) score = Logistic(score).yes();
  if (activation != Activation::kSoftmax) return;
  const TileSoftmax softmax(tile, tile.num_channels, [&](int64_t k, int64_t p, double value) {
    tile.scores[k * tile.max_size + p] = value;
  });
  for (int64_t k = 0; k < tile.num_channels; ++k)
    for (int64_t p = 0; p < tile.size; ++p) tile.scores[k * tile.max_size + p] /= softmax.sum[p];
}

/// Takes tile.gradients from the probabilities, which tile.scores holds, to the scores.
void differentiate_activation(Activation activation, LossTile& tile) {
  if (activation == Activation::kNone) return;
  double mean[kMaxTilePixels] = {};  // of the gradients under the softmax
  if (activation == Activation::kSoftmax)
    for (int64_t k = 0; k < tile.num_channels; ++k)
      for (int64_t p = 0; p < tile.size; ++p)
        mean[p] += tile.scores[k * tile.max_size + p] * tile.gradients[k * tile.max_size + p];
  for (int64_t k = 0; k < tile.num_channels; ++k)
    for (int64_t p = 0; p < tile.size; ++p) {
      const double probability = tile.scores[k * tile.max_size + p];
      double& gradient = tile.gradients[k * tile.max_size + p];
      gradient = activation == Activation::kSoftmax ? probability * (gradient - mean[p])
                                                    : probability * (1 - probability) * gradient;
    }
}

void add_overlaps(const DiceTerms& terms, const LossTile& tile, Overlap* of_classes) {
  for (int64_t k = terms.first_class; k < tile.num_channels; ++k) {
    Overlap& overlap = of_classes[k - terms.first_class];
    for (int64_t p = 0; p < tile.size; ++p) {
      if (!tile.counts[p]) continue;
      const double score = tile.scores[k * tile.max_size + p];
      const double target = tile.targets[k * tile.max_size + p];
      overlap[0] += score * target;
      overlap[1] += terms.squared ? score * score + target * target : score + target;
      overlap[2] += 1;
    }
  }
}

}  // namespace

namespace cpu {

at::Tensor dice_overlaps(const DiceTerms& terms, const LossOperands& operands) {
  const PieceTiles tiles(operands);
  const int64_t samples = operands.scores.size(0),
                classes = operands.scores.size(1) - terms.first_class;
  const int64_t rows = num_rows(tiles.shape()), rows_per_sample = rows / samples;
  std::vector<Overlap> of_rows(rows * classes, Overlap{});
  tiles.for_each([&](int64_t row, LossTile& tile) {
    apply_activation(terms.activation, tile);
    add_overlaps(terms, tile, &of_rows[row * classes]);
  });
  const at::Tensor overlaps = at::zeros({samples, classes, 3}, at::kDouble);
  auto sums = overlaps.accessor<double, 3>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < classes; ++k)
      for (int i = 0; i < 3; ++i)
        sums[row / rows_per_sample][k][i] += of_rows[row * classes + k][i];
  return overlaps;
}

void dice_gradient(const DiceTerms& terms, const LossOperands& operands, const at::Tensor& pulls,
                   const at::Tensor& gradient) {
  const auto factors = pulls.accessor<double, 3>();
  PieceTiles(operands).store_gradients(gradient, 1, [&](LossTile& tile) {
    apply_activation(terms.activation, tile);
    set_gradients(tile, [&](double p, double t, int64_t channel) {
      if (channel < terms.first_class) return 0.0;
      const auto pull = factors[tile.row[0]][channel - terms.first_class];
      return pull[0] * t + pull[1] * (terms.squared ? 2 * p : 1);
    });
    differentiate_activation(terms.activation, tile);
  });
}

}  // namespace cpu

const DiceKernels DiceKernels::kCpu{.dice_overlaps = cpu::dice_overlaps,
                                    .dice_gradient = cpu::dice_gradient};

}  // namespace tessera
