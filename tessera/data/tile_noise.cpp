#include "tessera/data/tile_noise.h"

#include <algorithm>

namespace tessera {
namespace {

/// The weight of the next lattice point `past` pixels after one: from 0 to 1, smoothly.
double weight(int64_t past, int64_t spacing) {
  const double t = static_cast<double>(past) / static_cast<double>(spacing);
  return t * t * (3.0 - 2.0 * t);
}

}  // namespace

TileNoise::TileNoise(const RandomKey& key, int64_t spacing, const Box& tile)
    : spacing_(spacing), tile_(tile) {
  for (int axis = 0; axis < tile.num_axes(); ++axis)
    lattice_.push_back({tile[axis].begin / spacing, (tile[axis].end - 1) / spacing + 2});
  points_.reserve(static_cast<size_t>(lattice_.volume()));
  const int last = lattice_.num_axes() - 1;
  const std::vector<int64_t> strides(lattice_.num_axes(), 0);
  for_each_row(lattice_, strides, [&](const Position& at, int64_t) {
    RandomKey line = key;
    for (int axis = 0; axis < last; ++axis) line = line.with(static_cast<uint64_t>(at[axis]));
    for (int64_t i = lattice_[last].begin; i < lattice_[last].end; ++i)
      points_.push_back(line.uniform(static_cast<uint64_t>(i)));
  });
}

void TileNoise::row(const Position& position, std::vector<double>* values) {
  const int last = lattice_.num_axes() - 1;
  line_ = points_;
  int64_t count = lattice_.volume();
  for (int axis = 0; axis < last; ++axis) {
    count /= lattice_[axis].size();
    const double* low = line_.data() + (position[axis] / spacing_ - lattice_[axis].begin) * count;
    const double t = weight(position[axis] % spacing_, spacing_);
    // In place: what is read lies at or after what is written.
    for (int64_t i = 0; i < count; ++i) line_[i] = low[i] + (low[i + count] - low[i]) * t;
  }
  const Range& along = tile_[last];
  values->resize(static_cast<size_t>(along.size()));
  for (int64_t x = along.begin; x < along.end;) {
    const int64_t point = x / spacing_;
    const double low = line_[point - lattice_[last].begin];
    const double rise = line_[point + 1 - lattice_[last].begin] - low;
    for (const int64_t stop = std::min(along.end, (point + 1) * spacing_); x < stop; ++x)
      (*values)[x - along.begin] = low + rise * weight(x - point * spacing_, spacing_);
  }
}

}  // namespace tessera
