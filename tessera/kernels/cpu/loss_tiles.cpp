#include "tessera/kernels/cpu/loss_tiles.h"

#include <ATen/Dispatch.h>

namespace tessera {
namespace {

/// Calls body(entry, pixel, element) for the elements of a tile in a view of batch x channels x
/// space.
template <class T, class Body>
void for_each_element(const LossTile& tile, const at::Tensor& tensor, const Body& body) {
  const at::IntArrayRef strides = tensor.strides();
  const int64_t stride = strides.back();
  T* row = tensor.data_ptr<T>() + tile.row[0] * strides[0] + tile.column * stride;
  for (size_t axis = 2; axis + 1 < strides.size(); ++axis)
    row += tile.row[axis - 1] * strides[axis];
  for (int64_t k = 0; k < tile.num_channels; ++k, row += strides[1])
    for (int64_t p = 0; p < tile.size; ++p) body(k * tile.max_size + p, p, row[p * stride]);
}

void load_reals(const LossTile& tile, const at::Tensor& tensor, std::vector<double>* entries) {
  AT_DISPATCH_FLOATING_TYPES(tensor.scalar_type(), "loss", [&] {
    for_each_element<scalar_t>(tile, tensor, [&](int64_t entry, int64_t, const scalar_t& element) {
      (*entries)[entry] = static_cast<double>(element);
    });
  });
}

}  // namespace

LossTile::LossTile(int64_t num_channels, int64_t max_size)
    : num_channels(num_channels),
      max_size(max_size),
      scores(num_channels * max_size),
      targets(num_channels * max_size),
      gradients(num_channels * max_size) {}

PieceTiles::PieceTiles(const LossOperands& operands) : ignore_index_(operands.ignore_index) {
  scores_ = with_space(operands.scores, 3);
  target_ = with_space(operands.target, operands.target.is_floating_point() ? 3 : 2);
  shape_ = scores_.sizes().vec();
  shape_.erase(shape_.begin() + 1);
}

at::Tensor PieceTiles::with_space(const at::Tensor& tensor, int64_t num_axes) {
  return tensor.dim() < num_axes ? tensor.unsqueeze(-1) : tensor;
}

void PieceTiles::load(const RowIndex& row, int64_t column, LossTile* tile) const {
  tile->row = row;
  tile->column = column;
  tile->size = std::min(tile->max_size, shape_.back() - column);
  load_reals(*tile, scores_, &tile->scores);
  if (!target_.is_floating_point()) return load_labels(tile);
  load_reals(*tile, target_, &tile->targets);
  std::fill(tile->counts, tile->counts + tile->size, true);
}

void PieceTiles::load_labels(LossTile* tile) const {
  const int64_t stride = target_.strides().back();
  const int64_t* labels = target_.data_ptr<int64_t>() + row_offset(tile->row, target_.strides()) +
                          tile->column * stride;
  for (int64_t p = 0; p < tile->size; ++p) {
    tile->counts[p] = labels[p * stride] != ignore_index_;
    tile->labels[p] = tile->counts[p] ? labels[p * stride] : 0;
  }
  for (int64_t k = 0; k < tile->num_channels; ++k)
    for (int64_t p = 0; p < tile->size; ++p)
      tile->targets[k * tile->max_size + p] = tile->num_channels == 1
                                                  ? static_cast<double>(tile->labels[p])
                                                  : static_cast<double>(tile->labels[p] == k);
}

void PieceTiles::store(const LossTile& tile, double factor, const at::Tensor& gradient) {
  AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "loss", [&] {
    for_each_element<scalar_t>(tile, gradient, [&](int64_t entry, int64_t p, scalar_t& element) {
      element =
          tile.counts[p] ? static_cast<scalar_t>(factor * tile.gradients[entry]) : scalar_t(0);
    });
  });
}

}  // namespace tessera
