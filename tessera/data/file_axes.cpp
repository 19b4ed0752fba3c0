#include "tessera/data/file_axes.h"

#include <algorithm>

namespace tessera {

int64_t samples_in(const FileAxes& axes, const Shape& held) {
  return axes.samples == FileAxes::kNone ? 1 : held[axes.samples];
}

Shape sample_shape(const FileAxes& axes, const Shape& held) {
  Shape shape;
  for (int axis : axes.order) shape.push_back(axis == FileAxes::kNone ? 1 : held[axis]);
  return shape;
}

void read_sample(const ArrayReader& file, const FileAxes& axes, int64_t sample, const Box& box,
                 at::Tensor target) {
  Box file_box;
  std::vector<int64_t> from;  // the target's axis that is each axis of the file which it has
  for (int axis = 0; axis < std::ssize(file.shape()); ++axis) {
    const auto found = std::find(axes.order.begin(), axes.order.end(), axis);
    if (found != axes.order.end()) {
      from.push_back(found - axes.order.begin());
      file_box.push_back(box[static_cast<int>(from.back())]);
    } else {
      const int64_t at = axis == axes.samples ? sample : 0;
      file_box.push_back({at, at + 1});
    }
  }
  for (int64_t axis = std::ssize(axes.order) - 1; axis >= 0; --axis) {
    if (axes.order[axis] != FileAxes::kNone) continue;
    target = target.select(axis, 0);
    for (int64_t& other : from) other -= other > axis ? 1 : 0;
  }
  file.read(file_box, target.permute(from));
}

}  // namespace tessera
