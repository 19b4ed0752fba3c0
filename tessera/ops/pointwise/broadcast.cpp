#include "tessera/ops/pointwise/broadcast.h"

#include <algorithm>

namespace tessera {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const Shape& shorter = a.size() < b.size() ? a : b;
  Shape shape = a.size() < b.size() ? b : a;
  const size_t in_front = shape.size() - shorter.size();
  for (size_t axis = 0; axis < shorter.size(); ++axis) {
    int64_t& size = shape[in_front + axis];
    if (size != shorter[axis] && size != 1 && shorter[axis] != 1) return std::nullopt;
    if (size == 1) size = shorter[axis];
  }
  return shape;
}

Box broadcast_needed(const Shape& operand, const Box& out) {
  const int num_axes = static_cast<int>(operand.size());
  if (out.empty()) return Box(std::vector<Range>(num_axes));
  Box box;
  for (int axis = 0; axis < num_axes; ++axis)
    box.push_back(operand[axis] == 1 ? Range{0, 1} : out[out.num_axes() - num_axes + axis]);
  return box;
}

}  // namespace tessera
