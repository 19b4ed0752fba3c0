#include "tessera/ops/broadcast.h"

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

void sum_stretched(const at::Tensor& tensor, const at::Tensor& sum) {
  at::Tensor aligned = sum;
  while (aligned.dim() < tensor.dim()) aligned = aligned.unsqueeze(0);
  std::vector<int64_t> stretched;
  for (int64_t axis = 0; axis < tensor.dim(); ++axis)
    if (aligned.size(axis) != tensor.size(axis)) stretched.push_back(axis);
  if (stretched.empty())
    aligned.copy_(tensor);  // a sum over no axes would be one over all of them
  else
    at::sum_out(aligned, tensor, stretched, /*keepdim=*/true);
}

}  // namespace tessera
