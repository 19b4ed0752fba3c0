#include "tests/unit/ops/random_views.h"

#include <limits>
#include <numeric>

namespace tessera {
namespace {

constexpr int64_t kWildLabel = -12345;

at::Tensor is_untouched(const at::Tensor& tensor) {
  return tensor.is_floating_point() ? at::isnan(tensor) : tensor == kWildLabel;
}

}  // namespace

bool Surrounded::surroundings_untouched() const {
  const at::Tensor untouched = is_untouched(surroundings).sum() - is_untouched(view).sum();
  return untouched.item<int64_t>() == surroundings.numel() - view.numel();
}

Surrounded surrounded(Draw& draw, const Shape& shape, at::ScalarType type) {
  const int64_t num_axes = static_cast<int64_t>(shape.size());
  std::vector<int64_t> order(num_axes), position(num_axes), before(num_axes);
  std::iota(order.begin(), order.end(), 0);
  if (draw.between(0, 2) == 0) draw.shuffle(order);
  Shape stored;
  for (int64_t axis : order) {
    position[axis] = static_cast<int64_t>(stored.size());
    before[axis] = draw.between(0, 2);
    stored.push_back(before[axis] + shape[axis] + draw.between(0, 2));
  }
  Surrounded result;
  const at::Scalar sentinel = at::isFloatingType(type)
                                  ? at::Scalar(std::numeric_limits<double>::quiet_NaN())
                                  : at::Scalar(kWildLabel);
  result.surroundings = at::full(stored, sentinel, type).permute(position);
  result.view = result.surroundings;
  for (int64_t axis = 0; axis < num_axes; ++axis)
    result.view = result.view.narrow(axis, before[axis], shape[axis]);
  return result;
}

at::Tensor strided_copy(Draw& draw, const at::Tensor& tensor) {
  const at::Tensor view = surrounded(draw, tensor.sizes().vec(), tensor.scalar_type()).view;
  view.copy_(tensor);
  return view;
}

Box draw_readable_box(Draw& draw, const Box& needed, const Shape& shape) {
  Box box = needed;
  if (needed.empty()) return box;
  for (int axis = 0; axis < box.num_axes(); ++axis) {
    if (draw.between(0, 1)) box[axis].begin = draw.between(0, needed[axis].begin);
    if (draw.between(0, 1)) box[axis].end = draw.between(needed[axis].end, shape[axis]);
  }
  return box;
}

namespace {

std::vector<Range> cut_axis(Draw& draw, const Axis& axis, const HarnessOptions& options) {
  std::vector<int64_t> cuts{0, axis.size};
  if (axis.kind == AxisKind::kPart && options.unit_part_axis)
    for (int64_t cut = 1; cut < axis.size; ++cut) cuts.push_back(cut);
  if (axis.kind == AxisKind::kBatch || axis.kind == AxisKind::kSpatial)
    for (int64_t more = draw.between(0, options.max_parts_per_axis - 1); more > 0; --more)
      cuts.push_back(draw.between(0, axis.size));
  std::sort(cuts.begin(), cuts.end());
  std::vector<Range> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    if (cuts[i] < cuts[i + 1]) parts.push_back({cuts[i], cuts[i + 1]});
  return parts;
}

}  // namespace

std::vector<Box> cut_output(Draw& draw, const ValueType& type, const HarnessOptions& options) {
  std::vector<Box> boxes{Box()};
  for (const Axis& axis : type.axes) {
    const std::vector<Range> parts = cut_axis(draw, axis, options);
    std::vector<Box> longer;
    for (const Box& box : boxes)
      for (const Range& part : parts) {
        longer.push_back(box);
        longer.back().push_back(part);
      }
    boxes = std::move(longer);
  }
  return boxes;
}

}  // namespace tessera
