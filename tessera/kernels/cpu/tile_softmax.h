#pragma once
// Softmax over the classes of neighbouring pixels, class by class, so that the inner loops run over
// pixels. A tile has `size` pixels, at most kMaxTilePixels, and logit(class, pixel).

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tessera {

inline constexpr int64_t kMaxTilePixels = 128;

/// Softmax is exp(x - max) / sum. Kept apart, they lose no digits in its logarithm.
struct TileSoftmax {
  double max[kMaxTilePixels];
  double sum[kMaxTilePixels];

  /// Calls store(k, p, exp(x - max)) for what a caller wants to keep.
  template <class Tile, class Store>
  TileSoftmax(const Tile& tile, int64_t num_classes, const Store& store) {
    for (int64_t p = 0; p < tile.size; ++p) max[p] = tile.logit(0, p);
    for (int64_t k = 1; k < num_classes; ++k)
      for (int64_t p = 0; p < tile.size; ++p) max[p] = std::max(max[p], tile.logit(k, p));
    std::fill(sum, sum + tile.size, 0.0);
    for (int64_t k = 0; k < num_classes; ++k)
      for (int64_t p = 0; p < tile.size; ++p) {
        const double exponential = std::exp(tile.logit(k, p) - max[p]);
        sum[p] += exponential;
        store(k, p, exponential);
      }
  }
};

}  // namespace tessera
