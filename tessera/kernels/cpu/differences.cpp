#include "tessera/kernels/differences.h"

#include <algorithm>

#include "tessera/kernels/cpu/loss_tiles.h"
#include "tessera/kernels/cpu/moments.h"

namespace tessera {
namespace {

/// First the mean of a tile's differences, then their distances from it.
Moments tile_moments(const LossTile& tile) {
  Moments moments;
  moments.count = static_cast<double>(tile.num_channels * tile.size);
  moments.mean = sum_elements(tile, [](double x, double t, int64_t) { return x - t; }) /
                 std::max(moments.count, 1.0);
  moments.m2 = sum_elements(tile, [&](double x, double t, int64_t) {
    return (x - t - moments.mean) * (x - t - moments.mean);
  });
  return moments;
}

}  // namespace

namespace cpu {

void difference_moments(const LossOperands& operands, const at::Tensor& moments) {
  const PieceTiles tiles(operands);
  const int64_t rows = num_rows(tiles.shape()), samples = tiles.shape()[0];
  std::vector<Moments> of_rows(rows), of_samples(samples);
  tiles.for_each([&](int64_t row, LossTile& tile) { of_rows[row].merge(tile_moments(tile)); });
  for (int64_t row = 0; row < rows; ++row) of_samples[row / (rows / samples)].merge(of_rows[row]);
  write_moments(of_samples, moments);
}

void centred_difference(const LossOperands& operands, double factor, const at::Tensor& means,
                        const at::Tensor& gradient) {
  const auto of_samples = means.accessor<double, 1>();
  PieceTiles(operands).store_gradients(gradient, factor, [&](LossTile& tile) {
    set_gradients(tile,
                  [&](double x, double t, int64_t) { return x - t - of_samples[tile.row[0]]; });
  });
}

}  // namespace cpu

const DifferenceKernels DifferenceKernels::kCpu{.difference_moments = cpu::difference_moments,
                                                .centred_difference = cpu::centred_difference};

}  // namespace tessera
