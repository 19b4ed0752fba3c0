#pragma once
// Broadcasting between shapes by PyTorch's rule: they are aligned at their last axes, an axis of
// size 1 stretches, and a shape with fewer axes counts as having axes of size 1 in front. Which
// part of an operand a box of the result reads, and how a gradient comes back to that part.

#include <ATen/ATen.h>

#include <optional>

#include "tessera/geometry/box.h"

namespace tessera {

/// None where the shapes do not fit each other.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// The box of an operand of shape `operand` that the box `out` of the result reads; [0, 1) along
/// stretched axes.
Box broadcast_needed(const Shape& operand, const Box& out);

/// Stores in `sum` the sum of `tensor` over the axes along which an operand of sum's shape was
/// stretched to it.
void sum_stretched(const at::Tensor& tensor, const at::Tensor& sum);

}  // namespace tessera
