#pragma once
// Walks the rows of strided views: every position of the leading axes, with the last axis left to
// the caller's inner loop. Views of one shape but different strides are walked together.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/geometry/box.h"

namespace tessera {

/// Position along each leading axis of a row; the last axis counts from 0.
using RowIndex = std::array<int64_t, Box::kMaxAxes>;

inline int64_t num_rows(at::IntArrayRef shape) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
  return rows;
}

/// Elements from the start of the view to the start of the row.
inline int64_t row_offset(const RowIndex& index, at::IntArrayRef strides) {
  int64_t offset = 0;
  for (size_t axis = 0; axis + 1 < strides.size(); ++axis) offset += index[axis] * strides[axis];
  return offset;
}

/// Calls body(row number, row index) for all rows, in parallel; bodies must not depend on each
/// other. `shape` has at least one axis.
template <class Body>
void parallel_rows(at::IntArrayRef shape, const Body& body) {
  constexpr int64_t kElementsPerTask = 1 << 14;
  const int64_t grain = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, shape.back()));
  const int num_leading = static_cast<int>(shape.size()) - 1;
  at::parallel_for(0, num_rows(shape), grain, [&](int64_t begin, int64_t end) {
    RowIndex index{};
    int64_t rest = begin;
    for (int axis = num_leading - 1; axis >= 0; --axis) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    for (int64_t row = begin; row < end; ++row) {
      body(row, index);
      for (int axis = num_leading - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis)
        index[axis] = 0;
    }
  });
}

}  // namespace tessera
