#pragma once
// A patch whose axes run along those of its source, forwards or backwards: a crop, a mirror image,
// a turn by right angles, or an image that is laid down in another order. Numbers are copied, never
// computed, so that every bit stays.
//
//   source index along axis a = origin[a] + p            p: the patch's position along from[a]
//                             = origin[a] + extent-1-p   where it is flipped
//
// Example:
//   AxisMap crop = crop_at({10, -2}, {64, 64});
//   copy_by_axes(reader, crop, box, /*fill=*/0, target);

#include <vector>

#include "tessera/augment/image_reader.h"

namespace tessera {

struct AxisMap {
  Shape patch;                  // sizes of the patch, along its own axes
  std::vector<int> from;        // of each axis of the source: the patch's axis along it
  std::vector<bool> flipped;    // of each axis of the source
  std::vector<int64_t> origin;  // of each axis of the source: the lowest index that is touched

  int num_axes() const { return static_cast<int>(patch.size()); }
  /// How much of the source's axis the patch covers.
  int64_t extent(int axis) const { return patch[from[axis]]; }
};

/// The patch of this size from `origin` on, with the source's axes.
AxisMap crop_at(const std::vector<int64_t>& origin, const Shape& size);

/// Writes a box of the patch (with channels where the reader has them) into `target`, a view of the
/// box's shape. What lies outside the source is `fill`.
void copy_by_axes(const ImageReader& reader, const AxisMap& map, const Box& box, double fill,
                  at::Tensor target);

}  // namespace tessera
