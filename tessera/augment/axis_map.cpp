#include "tessera/augment/axis_map.h"

#include <numeric>

namespace tessera {
namespace {

/// The indices of the source's axis that the patch's positions `of_patch` lie at.
Range source_range(const AxisMap& map, int axis, const Range& of_patch) {
  const int64_t origin = map.origin[axis], extent = map.extent(axis);
  return map.flipped[axis] ? Range{origin + extent - of_patch.end, origin + extent - of_patch.begin}
                           : of_patch.shifted(origin);
}

/// The other way round.
Range patch_range(const AxisMap& map, int axis, const Range& of_source) {
  const int64_t origin = map.origin[axis], extent = map.extent(axis);
  return map.flipped[axis]
             ? Range{origin + extent - of_source.end, origin + extent - of_source.begin}
             : of_source.shifted(-origin);
}

bool keeps_axes(const AxisMap& map) {
  for (int axis = 0; axis < map.num_axes(); ++axis)
    if (map.from[axis] != axis || map.flipped[axis]) return false;
  return true;
}

/// What was read with the source's axes, with those of the patch.
at::Tensor turned(const at::Tensor& read, const AxisMap& map, int num_leading) {
  std::vector<int64_t> backwards, order(map.num_axes() + num_leading);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int axis = 0; axis < map.num_axes(); ++axis) {
    if (map.flipped[axis]) backwards.push_back(axis + num_leading);
    order[map.from[axis] + num_leading] = axis + num_leading;
  }
  return (backwards.empty() ? read : read.flip(backwards)).permute(order);
}

}  // namespace

AxisMap crop_at(const std::vector<int64_t>& origin, const Shape& size) {
  AxisMap map{size, std::vector<int>(size.size()), std::vector<bool>(size.size(), false), origin};
  std::iota(map.from.begin(), map.from.end(), 0);
  return map;
}

void copy_by_axes(const ImageReader& reader, const AxisMap& map, const Box& box, double fill,
                  at::Tensor target) {
  if (box.empty()) return;
  const Box patch_box = spatial_box(reader, box);
  Box source = patch_box, covered = patch_box;
  for (int axis = 0; axis < map.num_axes(); ++axis) {
    source[axis] = intersect(source_range(map, axis, patch_box[map.from[axis]]),
                             Range{0, reader.spatial[axis]});
    covered[map.from[axis]] = patch_range(map, axis, source[axis]);
  }
  if (source.empty()) {
    target.fill_(fill);
    return;
  }
  if (!(covered == patch_box)) target.fill_(fill);
  const int num_leading = reader.has_channels ? 1 : 0;
  at::Tensor inside = target;
  for (int axis = 0; axis < map.num_axes(); ++axis)
    inside = inside.narrow(axis + num_leading, covered[axis].begin - patch_box[axis].begin,
                           covered[axis].size());
  const Box wanted = reader_box(reader, box, source);
  if (keeps_axes(map)) return reader.read(wanted, inside);
  at::Tensor read = at::empty(wanted.shape(), target.options());
  reader.read(wanted, read);
  inside.copy_(turned(read, map, num_leading));
}

}  // namespace tessera
