#pragma once
// What one patch is drawn to be: which part of its source it shows, and how that is turned, scaled
// and bent, as one map from positions of the patch to the source. A map that only mirrors and turns
// by right angles copies numbers and computes none.
//
//   source = centre + matrix * (turned position - its centre) + displacement(position)

#include <optional>

#include "tessera/augment/augmentation.h"
#include "tessera/augment/axis_map.h"
#include "tessera/augment/interpolation.h"
#include "tessera/base/random.h"

namespace tessera {

using Matrix3 = std::array<std::array<double, 3>, 3>;

class PatchDraw {
 public:
  /// Draws the turns of a patch of this size from a source of `spatial` sizes, whose pixels have
  /// `spacing` (or none): a rotation keeps shapes in the world, not in the grid of pixels. The
  /// patch lies at the source's origin until place() is called.
  PatchDraw(const RandomKey& key, const Augmentation& augmentation, const Shape& patch,
            const Shape& spatial, const std::vector<double>& spacing);

  /// How much of the source the patch covers, before it is scaled or bent.
  Shape extents() const;
  void place(const std::vector<int64_t>& origin) { axes_.origin = origin; }

  bool copies() const { return !matrix_ && !elastic_; }
  const AxisMap& axes() const { return axes_; }
  /// For draws that do not copy.
  PatchMap map() const;

 private:
  RowMap row_map(const Box& box) const;
  void turn(const RandomKey& key, const Augmentation& augmentation, const Shape& spatial);
  void turn_plane(int64_t quarters, int first, int second, const Shape& spatial);

  RandomKey key_;
  AxisMap axes_;
  std::optional<Matrix3> matrix_;
  std::array<double, 3> shift_ = {};
  std::optional<ElasticChange> elastic_;
};

}  // namespace tessera
