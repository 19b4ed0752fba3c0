#pragma once
// Broadcasting between shapes by PyTorch's rule: they are aligned at their last axes, an axis of
// size 1 stretches, and a shape with fewer axes counts as having axes of size 1 before its own.
// Also: which part of an operand a box of the result reads.

#include <optional>

#include "tessera/geometry/box.h"

namespace tessera {

/// None where the shapes do not fit each other.
std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);

/// The box of an operand of shape `operand` that the box `out` of the result reads; [0, 1) along
/// stretched axes.
Box broadcast_needed(const Shape& operand, const Box& out);

}  // namespace tessera
