#include "tessera/kernels/loss.h"

#include "tessera/base/error.h"
#include "tessera/kernels/cpu/element_loss.h"
#include "tessera/kernels/cpu/loss_tiles.h"

namespace tessera {
namespace {

/// Calls body(pixel, class weight, 1 - q_t, -log q_t, sum of exponentials) for the pixels that
/// count; tile.gradients then holds the exponentials.
template <class Body>
void for_softmax_pixels(const ElementLoss& loss, LossTile& tile, const Body& body) {
  const TileSoftmax softmax(tile, tile.num_channels, [&](int64_t k, int64_t p, double value) {
    tile.gradients[k * tile.max_size + p] = value;
  });
  for (int64_t p = 0; p < tile.size; ++p) {
    if (!tile.counts[p]) continue;
    const int64_t label = tile.labels[p];
    double others = 0;
    for (int64_t k = 0; k < tile.num_channels; ++k)
      if (k != label) others += tile.gradients[k * tile.max_size + p];
    const double wrong = others / softmax.sum[p];
    const double minus_log =
        wrong < 0.5 ? -std::log1p(-wrong)
                    : std::log(softmax.sum[p]) - (tile.logit(label, p) - softmax.max[p]);
    const double factor = loss.channel_weights.empty() ? 1 : loss.channel_weights[label];
    body(p, factor, wrong, minus_log, softmax.sum[p]);
  }
}

double softmax_focal_sum(const ElementLoss& loss, LossTile& tile) {
  double sum = 0;
  for_softmax_pixels(loss, tile,
                     [&](int64_t, double factor, double wrong, double minus_log, double) {
                       sum += factor * power_of(wrong, loss.parameter) * minus_log;
                     });
  return sum;
}

/// With u = 1 - q_t and L = -log q_t: (q_k - [k = t]) u^gamma (1 + gamma q_t L/u), where L/u tends
/// to 1 as u goes to 0.
void set_softmax_focal_gradients(const ElementLoss& loss, LossTile& tile) {
  const double gamma = loss.parameter;
  for_softmax_pixels(loss, tile,
                     [&](int64_t p, double factor, double u, double minus_log, double sum) {
                       const double steepness = u > 0 ? minus_log / u : 1;
                       factor *= power_of(u, gamma) * (1 + gamma * (1 - u) * steepness);
                       for (int64_t k = 0; k < tile.num_channels; ++k) {
                         double& entry = tile.gradients[k * tile.max_size + p];
                         entry = factor * (k == tile.labels[p] ? -u : entry / sum);
                       }
                     });
}

double sum_of(const ElementLoss& loss, const PieceTiles& tiles) {
  if (loss.form == ElementLoss::Form::kSoftmaxFocal)
    return tiles.sum([&](LossTile& tile) { return softmax_focal_sum(loss, tile); });
  return with_error(loss, [&](const auto& error) {
    return tiles.sum([&](LossTile& tile) {
      return sum_elements(tile,
                          [&](double x, double t, int64_t k) { return error.value(x, t, k); });
    });
  });
}

}  // namespace

namespace cpu {

at::Tensor loss_sum(const ElementLoss& loss, const LossOperands& operands) {
  return at::scalar_tensor(sum_of(loss, PieceTiles(operands)), at::kDouble);
}

void loss_gradient(const ElementLoss& loss, const at::Tensor& factor_tensor,
                   const LossOperands& operands, const at::Tensor& gradient) {
  const PieceTiles tiles(operands);
  const double factor = factor_tensor.item<double>();
  if (loss.form == ElementLoss::Form::kSoftmaxFocal)
    return tiles.store_gradients(gradient, factor,
                                 [&](LossTile& tile) { set_softmax_focal_gradients(loss, tile); });
  with_error(loss, [&](const auto& error) {
    tiles.store_gradients(gradient, factor, [&](LossTile& tile) {
      set_gradients(tile, [&](double x, double t, int64_t k) { return error.slope(x, t, k); });
    });
  });
}

}  // namespace cpu

const LossKernels LossKernels::kCpu{.loss_sum = cpu::loss_sum, .loss_gradient = cpu::loss_gradient};

}  // namespace tessera
