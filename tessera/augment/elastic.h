#pragma once
// Smooth random displacements: normal numbers at the points of a coarse grid, with cubic B-splines
// in between, which are smooth to the second derivative. A function of (key, position in the patch)
// alone; a box draws the points around it only.
//
// Example:
//   Elastic elastic(key, {.size = 4, .spacing = 32}, patch, box);
//   elastic.add_to_row(position, length, &coordinates);

#include "tessera/augment/augmentation.h"
#include "tessera/augment/interpolation.h"
#include "tessera/base/random.h"

namespace tessera {

class Elastic {
 public:
  /// `box` (spatial) lies in a patch of this size.
  Elastic(const RandomKey& key, const ElasticChange& change, const Shape& patch, const Box& box);

  /// Adds the displacements of the box's row at `position` to its coordinates, along each axis.
  void add_to_row(const Position& position, int64_t length, Coordinates* row) const;

 private:
  /// Of the points around a position: which is the first of four, and the weights of these.
  struct Spline {
    int64_t first = 0;
    double weights[4] = {};
  };
  Spline spline_at(int64_t position) const;
  /// The displacements along the points of the row's line, of one axis.
  void points_on_line(const Position& position, int component, std::vector<double>* line) const;

  int axes_;
  int64_t spacing_;
  Box points_;                               // the grid's points around the box
  std::vector<std::vector<double>> values_;  // of each axis, row major
};

}  // namespace tessera
