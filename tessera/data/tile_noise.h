#pragma once
// Smooth random noise in [0, 1): values at lattice points `spacing` pixels apart, with a smoothstep
// in between. A function of (key, position) alone; evaluated tile by tile and row by row, where the
// lattice points of the tile are drawn once.
//
// Only + - * / are used, in an order that does not depend on the tile: any tile gives the same
// bits, on any machine.
//
// Example:
//   TileNoise noise(key, 8, tile);
//   noise.row(position, &values);   // as many as the tile is long

#include <vector>

#include "tessera/base/random.h"
#include "tessera/data/box_rows.h"

namespace tessera {

class TileNoise {
 public:
  /// The tile has 1 to 3 axes and lies at positions of 0 or more.
  TileNoise(const RandomKey& key, int64_t spacing, const Box& tile);

  /// The noise along the tile's row at `position` (its last coordinate is not read).
  void row(const Position& position, std::vector<double>* values);

 private:
  const int64_t spacing_;
  const Box tile_;
  Box lattice_;                 // the lattice points around the tile, per axis
  std::vector<double> points_;  // their values, row major
  std::vector<double> line_;    // what interpolation leaves of them, axis by axis
};

}  // namespace tessera
