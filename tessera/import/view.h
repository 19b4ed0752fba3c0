#pragma once
// How code sees a value. Each axis of the code is a number of several digits (geometry/digits.h),
// and each of these is a digit of an axis of the value: after x.view(n, groups, c, h, w) two axes
// of the code are digits of the channels, after x.flatten(2) one axis is both spatial axes of the
// value. Views, permutations and expansions only change what the code sees. Nothing moves before an
// operator needs the tensor in one piece.
//
// Digits of size 1 are left out, so an axis of size 1 has none, and neighbours that are one digit
// are one.

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/geometry/box.h"

namespace tessera {

struct ViewDigit {
  static constexpr int kStretched = -1;  // instead of an axis: the same elements again and again

  int axis = kStretched;  // of the value
  int64_t weight = 1;     // how far a step of the digit goes along that axis
  int64_t size = 1;
  bool operator==(const ViewDigit&) const = default;
};
using ViewDigits = std::vector<ViewDigit>;  // the first counts most

class CodeView {
 public:
  CodeView() = default;
  explicit CodeView(std::vector<ViewDigits> axes);
  /// A value as it is.
  static CodeView plain(const Shape& value);

  int num_axes() const { return static_cast<int>(axes_.size()); }
  const ViewDigits& operator[](int axis) const { return axes_[axis]; }
  const std::vector<ViewDigits>& axes() const { return axes_; }
  Shape shape() const;
  bool operator==(const CodeView&) const = default;

  CodeView permuted(const std::vector<int>& axes) const;
  /// None where the new axes would begin in the middle of a digit that they do not divide.
  std::optional<CodeView> reshaped(const Shape& wanted) const;
  /// As expand() does: axes of size 1 stretch, and further ones come first. None where it does not
  /// fit.
  std::optional<CodeView> stretched(const Shape& wanted) const;
  CodeView with_axis(int axis, ViewDigits digits) const;
  CodeView without_axes(const std::vector<bool>& left_out) const;

  bool is_stretched() const;
  bool is_plain(const Shape& value) const;
  /// Whether the axis of the code is all of that axis of the value.
  bool is_whole(int axis, int value_axis, const Shape& value) const;
  /// The axis of the value that each axis of the code is; none where they are more entangled.
  std::optional<std::vector<int>> order(const Shape& value) const;
  bool has_order(const std::vector<int>& order, const Shape& value) const;

  /// All digits, axis by axis.
  ViewDigits digits() const;

 private:
  std::vector<ViewDigits> axes_;
};

int64_t size_of(const ViewDigits& digits);

/// Splits digits of both until their sizes are the same, one by one; false where they cannot be.
bool refine_together(ViewDigits& a, ViewDigits& b);

/// Of an axis of the value, from the one that counts most.
ViewDigits digits_along(const ViewDigits& digits, int value_axis);
/// Of each axis of the value.
std::vector<ViewDigits> digits_by_axis(const ViewDigits& digits, int num_axes);

/// Those that are not among `taken`.
ViewDigits digits_without(const ViewDigits& digits, const ViewDigits& taken);

}  // namespace tessera
