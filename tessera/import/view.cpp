#include "tessera/import/view.h"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

/// Without digits of size 1, and with neighbours in one where they are one number.
ViewDigits simplified(const ViewDigits& digits) {
  ViewDigits simple;
  for (const ViewDigit& digit : digits) {
    if (digit.size == 1) continue;
    const bool goes_on =
        !simple.empty() && simple.back().axis == digit.axis &&
        (digit.axis == ViewDigit::kStretched || simple.back().weight == digit.weight * digit.size);
    if (goes_on)
      simple.back() = {digit.axis, digit.weight, simple.back().size * digit.size};
    else
      simple.push_back(digit);
  }
  return simple;
}

/// The upper digit of the two that a digit is made of, with `size` values; the lower one stays.
ViewDigit take_upper(ViewDigit& digit, int64_t size) {
  const int64_t lower = digit.size / size;
  const ViewDigit upper{digit.axis, digit.weight * lower, size};
  digit.size = lower;
  return upper;
}

}  // namespace

CodeView::CodeView(std::vector<ViewDigits> axes) : axes_(std::move(axes)) {
  for (ViewDigits& digits : axes_) digits = simplified(digits);
}

CodeView CodeView::plain(const Shape& value) {
  std::vector<ViewDigits> axes;
  for (size_t axis = 0; axis < value.size(); ++axis)
    axes.push_back({{static_cast<int>(axis), 1, value[axis]}});
  return CodeView(std::move(axes));
}

int64_t size_of(const ViewDigits& digits) {
  int64_t size = 1;
  for (const ViewDigit& digit : digits) size *= digit.size;
  return size;
}

Shape CodeView::shape() const {
  Shape shape;
  for (const ViewDigits& digits : axes_) shape.push_back(size_of(digits));
  return shape;
}

CodeView CodeView::permuted(const std::vector<int>& axes) const {
  std::vector<ViewDigits> moved;
  for (int axis : axes) moved.push_back(axes_[axis]);
  return CodeView(std::move(moved));
}

std::optional<CodeView> CodeView::reshaped(const Shape& wanted) const {
  const ViewDigits all = digits();
  size_t next = 0;
  ViewDigit rest;  // what is left of the digit before `next`
  std::vector<ViewDigits> axes;
  for (int64_t size : wanted) {
    ViewDigits& axis = axes.emplace_back();
    while (size > 1) {
      if (rest.size == 1) {
        if (next == all.size()) return std::nullopt;
        rest = all[next++];
      }
      const int64_t taken = std::min(size, rest.size);
      if (size % taken != 0 || rest.size % taken != 0) return std::nullopt;
      axis.push_back(take_upper(rest, taken));
      size /= taken;
    }
  }
  if (next != all.size() || rest.size != 1) return std::nullopt;
  return CodeView(std::move(axes));
}

std::optional<CodeView> CodeView::stretched(const Shape& wanted) const {
  if (wanted.size() < axes_.size()) return std::nullopt;
  const size_t further = wanted.size() - axes_.size();
  std::vector<ViewDigits> axes(further);
  axes.insert(axes.end(), axes_.begin(), axes_.end());
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    if (size_of(axes[axis]) == wanted[axis]) continue;
    if (!axes[axis].empty()) return std::nullopt;
    axes[axis] = {{ViewDigit::kStretched, 1, wanted[axis]}};
  }
  return CodeView(std::move(axes));
}

CodeView CodeView::with_axis(int axis, ViewDigits digits) const {
  std::vector<ViewDigits> axes = axes_;
  axes[axis] = std::move(digits);
  return CodeView(std::move(axes));
}

CodeView CodeView::without_axes(const std::vector<bool>& left_out) const {
  std::vector<ViewDigits> axes;
  for (size_t axis = 0; axis < axes_.size(); ++axis)
    if (!left_out[axis]) axes.push_back(axes_[axis]);
  return CodeView(std::move(axes));
}

bool CodeView::is_stretched() const {
  const ViewDigits all = digits();
  return std::any_of(all.begin(), all.end(),
                     [](const ViewDigit& digit) { return digit.axis == ViewDigit::kStretched; });
}

bool CodeView::is_plain(const Shape& value) const { return *this == plain(value); }

bool CodeView::is_whole(int axis, int value_axis, const Shape& value) const {
  return axes_[axis] == simplified({{value_axis, 1, value[value_axis]}});
}

bool CodeView::has_order(const std::vector<int>& order, const Shape& value) const {
  if (order.size() != axes_.size() || order.size() != value.size()) return false;
  for (int axis = 0; axis < num_axes(); ++axis)
    if (!is_whole(axis, order[axis], value)) return false;
  return true;
}

std::optional<std::vector<int>> CodeView::order(const Shape& value) const {
  if (axes_.size() != value.size()) return std::nullopt;
  std::vector<int> order, units;
  for (size_t axis = 0; axis < value.size(); ++axis)
    if (value[axis] == 1) units.push_back(static_cast<int>(axis));
  auto unit = units.begin();
  for (const ViewDigits& digits : axes_) {
    if (digits.empty() && unit == units.end()) return std::nullopt;
    order.push_back(digits.empty() ? *unit++ : digits.front().axis);
  }
  return has_order(order, value) ? std::optional(order) : std::nullopt;
}

ViewDigits CodeView::digits() const {
  ViewDigits all;
  for (const ViewDigits& digits : axes_) all.insert(all.end(), digits.begin(), digits.end());
  return all;
}

bool refine_together(ViewDigits& a, ViewDigits& b) {
  if (size_of(a) != size_of(b)) return false;
  ViewDigits fine_a, fine_b;
  ViewDigit rest_a, rest_b;
  size_t next_a = 0, next_b = 0;
  while (true) {
    if (rest_a.size == 1 && next_a < a.size()) rest_a = a[next_a++];
    if (rest_b.size == 1 && next_b < b.size()) rest_b = b[next_b++];
    const int64_t size = std::min(rest_a.size, rest_b.size);
    if (size == 1) break;
    if (rest_a.size % size != 0 || rest_b.size % size != 0) return false;
    fine_a.push_back(take_upper(rest_a, size));
    fine_b.push_back(take_upper(rest_b, size));
  }
  a = fine_a;
  b = fine_b;
  return true;
}

ViewDigits digits_along(const ViewDigits& digits, int value_axis) {
  ViewDigits along;
  for (const ViewDigit& digit : digits)
    if (digit.axis == value_axis) along.push_back(digit);
  std::sort(along.begin(), along.end(),
            [](const ViewDigit& a, const ViewDigit& b) { return a.weight > b.weight; });
  return along;
}

std::vector<ViewDigits> digits_by_axis(const ViewDigits& digits, int num_axes) {
  std::vector<ViewDigits> axes;
  for (int axis = 0; axis < num_axes; ++axis) axes.push_back(digits_along(digits, axis));
  return axes;
}

ViewDigits digits_without(const ViewDigits& digits, const ViewDigits& taken) {
  ViewDigits rest;
  for (const ViewDigit& digit : digits)
    if (std::find(taken.begin(), taken.end(), digit) == taken.end()) rest.push_back(digit);
  return rest;
}

}  // namespace tessera
