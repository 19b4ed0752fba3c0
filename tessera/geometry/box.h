#pragma once
// One range per tensor axis (batch, channel, spatial...). A box names the part of a value that a
// rank owns, needs or sends, always in global coordinates.
//
// Example:
//   Box tile{{0, 1}, {0, 64}, {128, 256}, {0, 256}};
//   intersect(tile, halo).volume();

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "tessera/geometry/range.h"

namespace tessera {

using Shape = std::vector<int64_t>;

class Box {
 public:
  static constexpr int kMaxAxes = 6;

  Box() = default;
  Box(std::initializer_list<Range> ranges);
  explicit Box(const std::vector<Range>& ranges);
  /// The box [0, size) along every axis.
  static Box whole(const Shape& shape);

  int num_axes() const { return num_axes_; }
  const Range& operator[](int axis) const { return ranges_[axis]; }
  Range& operator[](int axis) { return ranges_[axis]; }
  void push_back(const Range& range);

  int64_t volume() const;
  bool empty() const;
  /// An empty box lies in every box.
  bool contains(const Box& other) const;
  Shape shape() const;
  bool operator==(const Box& other) const;

 private:
  std::array<Range, kMaxAxes> ranges_{};
  int num_axes_ = 0;
};

Box intersect(const Box& a, const Box& b);
/// The smallest box that holds both; an empty box adds nothing.
Box hull(const Box& a, const Box& b);
std::string to_string(const Box& box);
std::string to_string(const Shape& shape);

/// The box with one axis less.
Box without_axis(const Box& box, int left_out);

}  // namespace tessera
