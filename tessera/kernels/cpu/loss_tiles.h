#pragma once
// Neighbouring pixels of a piece, copied out of its views: in double, close together, and with the
// target as numbers whether it is labels or real. A loss is then a few plain loops, the same for
// every type, stride and kind of target.
//
// Example: the sum of squared errors of a piece
//   PieceTiles(operands).sum([](LossTile& tile) {
//     return sum_elements(tile, [](double x, double t, int64_t) { return (x - t) * (x - t); });
//   });

#include <numeric>
#include <vector>

#include "tessera/kernels/cpu/rows.h"
#include "tessera/kernels/cpu/tile_softmax.h"
#include "tessera/kernels/loss.h"

namespace tessera {

/// Pixels of one row. Labels are spread over the channels: one channel holds the label itself, one
/// of several holds 1 where the label names it and 0 elsewhere.
struct LossTile {
  LossTile(int64_t num_channels, int64_t max_size);

  double logit(int64_t channel, int64_t pixel) const { return scores[channel * max_size + pixel]; }

  int64_t num_channels = 0;
  int64_t max_size = 0;  // pixel p of channel k is entry k * max_size + p
  int64_t size = 0;
  std::vector<double> scores;      // the prediction
  std::vector<double> targets;     // anything where a pixel does not count
  std::vector<double> gradients;   // what a loss makes of them; scratch until then
  int64_t labels[kMaxTilePixels];  // label targets only; 0 where a pixel does not count
  bool counts[kMaxTilePixels];
  RowIndex row{};      // where the tile lies in the piece
  int64_t column = 0;  // of its first pixel
};

/// The tiles of a piece's prediction and target. Values without space have rows of one pixel.
class PieceTiles {
 public:
  /// The piece is not empty.
  explicit PieceTiles(const LossOperands& operands);

  /// Batch x space.
  at::IntArrayRef shape() const { return shape_; }

  /// Calls body(row number, tile) for all tiles: rows in parallel, the tiles of a row in order.
  template <class Body>
  void for_each(const Body& body) const {
    const int64_t row_size = shape_.back();
    parallel_rows(shape_, [&](int64_t row, const RowIndex& index) {
      LossTile tile(scores_.size(1), std::min(kMaxTilePixels, row_size));
      for (int64_t column = 0; column < row_size; column += kMaxTilePixels) {
        load(index, column, &tile);
        body(row, tile);
      }
    });
  }

  /// The sum of term(tile), by rows, so that it does not depend on the number of threads.
  template <class Term>
  double sum(const Term& term) const {
    std::vector<double> row_sums(num_rows(shape_));
    for_each([&](int64_t row, LossTile& tile) { row_sums[row] += term(tile); });
    return std::accumulate(row_sums.begin(), row_sums.end(), 0.0);
  }

  /// Stores factor * tile.gradients, and 0 where a pixel does not count, into `gradient`, a view of
  /// the prediction's piece. `make` turns a tile's scores and targets into its gradients.
  template <class Make>
  void store_gradients(const at::Tensor& gradient, double factor, const Make& make) const {
    const at::Tensor target = with_space(gradient, 3);
    for_each([&](int64_t, LossTile& tile) {
      make(tile);
      store(tile, factor, target);
    });
  }

 private:
  static at::Tensor with_space(const at::Tensor& tensor, int64_t num_axes);
  void load(const RowIndex& row, int64_t column, LossTile* tile) const;
  void load_labels(LossTile* tile) const;
  static void store(const LossTile& tile, double factor, const at::Tensor& gradient);

  at::Tensor scores_;  // batch x channels x space
  at::Tensor target_;  // batch x space, or as scores_
  std::vector<int64_t> shape_;
  int64_t ignore_index_;
};

/// The sum of value(score, target, channel) over the elements that count.
template <class Value>
double sum_elements(const LossTile& tile, const Value& value) {
  double sum = 0;
  for (int64_t k = 0; k < tile.num_channels; ++k)
    for (int64_t p = 0; p < tile.size; ++p) {
      const int64_t entry = k * tile.max_size + p;
      if (tile.counts[p]) sum += value(tile.scores[entry], tile.targets[entry], k);
    }
  return sum;
}

/// Sets the gradients to slope(score, target, channel) where a pixel counts.
template <class Slope>
void set_gradients(LossTile& tile, const Slope& slope) {
  for (int64_t k = 0; k < tile.num_channels; ++k)
    for (int64_t p = 0; p < tile.size; ++p) {
      const int64_t entry = k * tile.max_size + p;
      if (tile.counts[p]) tile.gradients[entry] = slope(tile.scores[entry], tile.targets[entry], k);
    }
}

}  // namespace tessera
