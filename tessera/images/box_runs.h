#pragma once
// A box of a dense array as runs of elements that lie one after the other.
//
// Example:
//   for_each_run(shape, box, [&](int64_t index, int64_t offset, int64_t count) {
//     copy(&array[index], count, &dense_box[offset]);
//   });

#include <cstring>

#include "tessera/geometry/box.h"

namespace tessera {

/// Calls visit(index, offset, count) for each run: where it begins in an array of this shape, where
/// in a dense copy of the box, and its length. In ascending order.
template <class Visit>
void for_each_run(const Shape& shape, const Box& box, Visit visit) {
  if (box.empty()) return;
  int last = box.num_axes() - 1;  // the first axis of a run
  int64_t count = 1;
  for (; last >= 0; --last) {
    count *= box[last].size();
    if (box[last].size() < shape[last]) break;
  }
  if (last < 0) return visit(int64_t{0}, int64_t{0}, count);
  Shape at(shape.size(), 0);
  for (int axis = 0; axis < box.num_axes(); ++axis) at[axis] = box[axis].begin;
  for (int64_t offset = 0;; offset += count) {
    int64_t index = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) index = index * shape[axis] + at[axis];
    visit(index, offset, count);
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      if (++at[axis] < box[axis].end) break;
      at[axis] = box[axis].begin;
    }
    if (axis < 0) return;
  }
}

/// The box of a dense array in memory, dense again; `bytes` is the size of an element.
inline void copy_box(const char* array, const Shape& shape, const Box& box, int64_t bytes,
                     char* to) {
  for_each_run(shape, box, [&](int64_t index, int64_t offset, int64_t count) {
    std::memcpy(to + offset * bytes, array + index * bytes, static_cast<size_t>(count * bytes));
  });
}

}  // namespace tessera
