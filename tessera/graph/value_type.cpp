#include "tessera/graph/value_type.h"

#include <fmt/format.h>

#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

Ratio Ratio::of(int64_t num, int64_t den) {
  TESSERA_CHECK(den != 0, "ratio {}/{}", num, den);
  const int64_t divisor = std::gcd(num, den) * (den < 0 ? -1 : 1);
  return {num / divisor, den / divisor};
}

ValueType ValueType::image(const Shape& shape) {
  if (shape.size() < 3 || shape.size() > 5)
    throw_error<InvalidInput>(
        "[input] {} has {}; give batch x channels x 1 to 3 spatial sizes, such as 1x3x512x512",
        tessera::to_string(shape), counted(std::ssize(shape), "axis", "axes"));
  ValueType type;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 1)
      throw_error<InvalidInput>("[input] {}: size {} of axis {} must be at least 1",
                                tessera::to_string(shape), shape[axis], axis);
    const int spatial_index = static_cast<int>(axis) - 2;
    const AxisKind kind = axis == 0   ? AxisKind::kBatch
                          : axis == 1 ? AxisKind::kChannel
                                      : AxisKind::kSpatial;
    type.axes.push_back({kind, shape[axis], spatial_index < 0 ? -1 : spatial_index, {}});
  }
  return type;
}

Shape ValueType::shape() const {
  Shape shape;
  for (const Axis& axis : axes) shape.push_back(axis.size);
  return shape;
}

int ValueType::num_spatial() const { return num_axes() - first_spatial(); }

int ValueType::first_spatial() const {
  int axis = 0;
  while (axis < num_axes() && axes[axis].kind != AxisKind::kSpatial) ++axis;
  return axis;
}

std::string to_string(const ValueType& type) { return to_string(type.shape()); }

}  // namespace tessera
