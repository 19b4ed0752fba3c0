#include "tessera/kernels/cross_entropy.h"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tessera/kernels/cpu/elementary.h"
#include "tessera/kernels/cpu/pixel_tiles.h"
#include "tessera/kernels/cpu/thread_buffer.h"

namespace tessera {
namespace {

constexpr int64_t kStep = kLanes<double>;

/// Neighbouring pixels: their logits in double, class by class, whole registers of pixels; then
/// their exponentials.
///
///   numbers[class][pixel]     what is beyond the last pixel is 0
struct ExponentialTile {
  static constexpr int64_t kBytes = 64 << 10;

  /// As many pixels as fit the cache with all their classes.
  static int64_t most_pixels(int64_t classes) {
    const int64_t fitting = kBytes / static_cast<int64_t>(sizeof(double)) / classes;
    return std::clamp<int64_t>(fitting / kStep * kStep, kStep, TilePlace::kMaxSize);
  }

  template <class T>
  ExponentialTile(const PixelTile<const T>& logits, int64_t num_classes, int64_t pixels)
      : classes(num_classes),
        size(pixels),
        stride((pixels + kStep - 1) / kStep * kStep),
        numbers(thread_buffer<double>(num_classes * stride)) {
    for (int64_t k = 0; k < classes; ++k) {
      double* to = row(k);
      const T* const from = &logits(k, 0);
      if (logits.stride == 1)
        for (int64_t p = 0; p < size; ++p) to[p] = static_cast<double>(from[p]);
      else
        for (int64_t p = 0; p < size; ++p) to[p] = static_cast<double>(from[p * logits.stride]);
      std::fill(to + size, to + stride, 0.0);
      if (k == 0)
        std::copy_n(to, stride, max);
      else
        for (int64_t p = 0; p < stride; ++p) max[p] = std::max(max[p], to[p]);
    }
  }

  double* row(int64_t k) const { return numbers + k * stride; }

  /// Leaves exp(x - max) in the place of x, and their sum.
  void exponentiate() {
    std::fill_n(sum, stride, 0.0);
    for (int64_t k = 0; k < classes; ++k)
      for (int64_t p = 0; p < stride; p += kStep) {
        double* at = row(k) + p;
        const Vector<double> value = exponential(load(at) - load(max + p));
        store(at, value);
        store(sum + p, load(sum + p) + value);
      }
  }

  int64_t classes, size, stride;
  double* numbers;
  double max[TilePlace::kMaxSize];
  double sum[TilePlace::kMaxSize];
};

/// A pixel's term is -hard log q_t - Σ_k soft w_k log q_k.
class PixelTerms {
 public:
  PixelTerms(const CrossEntropyTerms& terms, int64_t classes)
      : terms_(terms),
        soft_(terms.label_smoothing / static_cast<double>(classes)),
        total_weight_(
            terms.class_weights.empty()
                ? static_cast<double>(classes)
                : std::accumulate(terms.class_weights.begin(), terms.class_weights.end(), 0.0)) {}

  bool counts(int64_t label) const { return label != terms_.ignore_index; }
  double weight(int64_t k) const {
    return terms_.class_weights.empty() ? 1.0 : terms_.class_weights[k];
  }
  double hard(int64_t label) const { return (1 - terms_.label_smoothing) * weight(label); }
  double soft() const { return soft_; }
  double total_weight() const { return total_weight_; }

 private:
  const CrossEntropyTerms& terms_;
  double soft_, total_weight_;
};

/// What -log q_k lacks of log(sum): max - x_k, summed over a pixel's terms.
void add_distances(const ExponentialTile& tile, const PixelTerms& terms,
                   const PixelTile<const int64_t>& labels, double* distances) {
  for (int64_t p = 0; p < tile.size; ++p) {
    const int64_t label = labels(0, p);
    distances[p] =
        terms.counts(label) ? terms.hard(label) * (tile.max[p] - tile.row(label)[p]) : 0.0;
  }
  if (terms.soft() == 0) return;
  for (int64_t k = 0; k < tile.classes; ++k) {
    const double soft = terms.soft() * terms.weight(k);
    for (int64_t p = 0; p < tile.size; ++p)
      if (terms.counts(labels(0, p))) distances[p] += soft * (tile.max[p] - tile.row(k)[p]);
  }
}

template <class T>
double tile_sum(const PixelTile<const T>& logits, const PixelTile<const int64_t>& labels,
                int64_t classes, int64_t size, const PixelTerms& terms) {
  ExponentialTile tile(logits, classes, size);
  double distances[TilePlace::kMaxSize];
  add_distances(tile, terms, labels, distances);
  tile.exponentiate();
  double logs[TilePlace::kMaxSize], total = 0;
  for (int64_t p = 0; p < tile.stride; p += kStep) store(logs + p, logarithm(load(tile.sum + p)));
  for (int64_t p = 0; p < size; ++p) {
    const int64_t label = labels(0, p);
    if (!terms.counts(label)) continue;
    total += (terms.hard(label) + terms.soft() * terms.total_weight()) * logs[p] + distances[p];
  }
  return total;
}

template <class T>
void tile_gradient(const PixelTile<const T>& logits, const PixelTile<const int64_t>& labels,
                   int64_t classes, int64_t size, const PixelTerms& terms, double factor,
                   const PixelTile<T>& gradient) {
  ExponentialTile tile(logits, classes, size);
  tile.exponentiate();
  double share[TilePlace::kMaxSize], soft[TilePlace::kMaxSize];
  for (int64_t p = 0; p < size; ++p) {
    const int64_t label = labels(0, p);
    const bool counts = terms.counts(label);
    const double hard = counts ? factor * terms.hard(label) : 0.0;
    soft[p] = counts ? factor * terms.soft() : 0.0;
    share[p] = counts ? (hard + soft[p] * terms.total_weight()) / tile.sum[p] : 0.0;
    if (!counts)  // 0 also where logits are not finite
      for (int64_t k = 0; k < classes; ++k) tile.row(k)[p] = 0;
  }
  for (int64_t k = 0; k < classes; ++k) {
    const double weight = terms.weight(k);
    double* row = tile.row(k);
    for (int64_t p = 0; p < size; ++p) row[p] = share[p] * row[p] - soft[p] * weight;
  }
  for (int64_t p = 0; p < size; ++p)
    if (const int64_t label = labels(0, p); terms.counts(label))
      tile.row(label)[p] -= factor * terms.hard(label);
  for (int64_t k = 0; k < classes; ++k) {
    T* const to = &gradient(k, 0);
    if (gradient.stride == 1)
      for (int64_t p = 0; p < size; ++p) to[p] = static_cast<T>(tile.row(k)[p]);
    else
      for (int64_t p = 0; p < size; ++p) to[p * gradient.stride] = static_cast<T>(tile.row(k)[p]);
  }
}

/// Labels as an image of one channel, so that they are walked as logits are.
at::Tensor label_image(const at::Tensor& labels) { return labels.unsqueeze(1); }

/// Calls body(row number, place) for the tiles of all pixels, rows in parallel.
template <class Body>
void in_class_tiles(const at::Tensor& logits, const Body& body) {
  in_pixel_tiles(logits, ExponentialTile::most_pixels(logits.size(1)), body);
}

}  // namespace

namespace cpu {

at::Tensor cross_entropy_sum(const CrossEntropyTerms& terms, const at::Tensor& logits,
                             const at::Tensor& labels) {
  const PixelTerms of_pixel(terms, logits.size(1));
  const PixelView<const int64_t> targets(label_image(labels));
  // Sums of rows, added in their order.
  std::vector<double> row_sums(num_rows(labels.sizes()));
  const int64_t row_size = labels.sizes().back();
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "cross_entropy", [&] {
    const PixelView<const scalar_t> x(logits);
    in_class_tiles(logits, [&](const TilePlace& place) {
      row_sums[place.first_pixel / row_size] += tile_sum<scalar_t>(
          x.tile(place), targets.tile(place), logits.size(1), place.size, of_pixel);
    });
  });
  return at::scalar_tensor(std::accumulate(row_sums.begin(), row_sums.end(), 0.0), at::kDouble);
}

void cross_entropy_gradient(const CrossEntropyTerms& terms, const at::Tensor& factor_tensor,
                            const at::Tensor& logits, const at::Tensor& labels,
                            const at::Tensor& gradient) {
  const double factor = factor_tensor.item<double>();
  const PixelTerms of_pixel(terms, logits.size(1));
  const PixelView<const int64_t> targets(label_image(labels));
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "cross_entropy", [&] {
    const PixelView<const scalar_t> x(logits);
    const PixelView<scalar_t> dx(gradient);
    in_class_tiles(logits, [&](const TilePlace& place) {
      tile_gradient<scalar_t>(x.tile(place), targets.tile(place), logits.size(1), place.size,
                              of_pixel, factor, dx.tile(place));
    });
  });
}

}  // namespace cpu

const CrossEntropyKernels CrossEntropyKernels::kCpu{
    .cross_entropy_sum = cpu::cross_entropy_sum,
    .cross_entropy_gradient = cpu::cross_entropy_gradient};

}  // namespace tessera
