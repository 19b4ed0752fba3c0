#include "tessera/geometry/box.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tessera/base/error.h"

namespace tessera {

std::string to_string(const Range& range) { return fmt::format("{}:{}", range.begin, range.end); }

Box::Box(std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) push_back(range);
}

Box::Box(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) push_back(range);
}

Box Box::whole(const Shape& shape) {
  Box box;
  for (int64_t size : shape) box.push_back({0, size});
  return box;
}

void Box::push_back(const Range& range) {
  TESSERA_CHECK(num_axes_ < kMaxAxes, "a box has at most {} axes", int{kMaxAxes});
  ranges_[num_axes_++] = range;
}

int64_t Box::volume() const {
  int64_t volume = 1;
  for (int axis = 0; axis < num_axes_; ++axis) volume *= ranges_[axis].size();
  return volume;
}

bool Box::empty() const {
  for (int axis = 0; axis < num_axes_; ++axis)
    if (ranges_[axis].empty()) return true;
  return false;
}

bool Box::contains(const Box& other) const {
  TESSERA_CHECK(num_axes_ == other.num_axes_, "{} against {} axes", num_axes_, other.num_axes_);
  if (other.empty()) return true;
  for (int axis = 0; axis < num_axes_; ++axis)
    if (!ranges_[axis].contains(other[axis])) return false;
  return true;
}

Shape Box::shape() const {
  Shape shape;
  for (int axis = 0; axis < num_axes_; ++axis) shape.push_back(ranges_[axis].size());
  return shape;
}

bool Box::operator==(const Box& other) const {
  return num_axes_ == other.num_axes_ &&
         std::equal(ranges_.begin(), ranges_.begin() + num_axes_, other.ranges_.begin());
}

Box intersect(const Box& a, const Box& b) {
  TESSERA_CHECK(a.num_axes() == b.num_axes(), "{} against {} axes", a.num_axes(), b.num_axes());
  Box result;
  for (int axis = 0; axis < a.num_axes(); ++axis) result.push_back(intersect(a[axis], b[axis]));
  return result;
}

Box hull(const Box& a, const Box& b) {
  TESSERA_CHECK(a.num_axes() == b.num_axes(), "{} against {} axes", a.num_axes(), b.num_axes());
  if (a.empty()) return b;
  if (b.empty()) return a;
  Box result;
  for (int axis = 0; axis < a.num_axes(); ++axis) result.push_back(hull(a[axis], b[axis]));
  return result;
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (int axis = 0; axis < box.num_axes(); ++axis)
    text += (axis ? ", " : "") + to_string(box[axis]);
  return text + "]";
}

// A loop, not fmt::join: GCC 12 with -O3 sees an overflow inside fmt's parser for it.
std::string to_string(const Shape& shape) {
  std::string text;
  for (int64_t size : shape) text += fmt::format("{}{}", text.empty() ? "" : "x", size);
  return text;
}

Box without_axis(const Box& box, int left_out) {
  Box result;
  for (int axis = 0; axis < box.num_axes(); ++axis)
    if (axis != left_out) result.push_back(box[axis]);
  return result;
}

}  // namespace tessera
