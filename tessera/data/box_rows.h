#pragma once
// Loops over the rows of a box (its runs along the last axis) and writes into tensors of any
// strides, so that data goes straight into the interior of a buffer with margins. Only a target of
// another type or device than the loop can write takes a detour through a host copy.
//
// Example:
//   write_real(target, [&](auto* data, at::IntArrayRef strides) {
//     for_each_row(box, strides, [&](const Position& at, int64_t offset) { data[offset] = ...; });
//   });

#include <ATen/ATen.h>

#include <array>

#include "tessera/base/error.h"
#include "tessera/geometry/box.h"

namespace tessera {

using Position = std::array<int64_t, Box::kMaxAxes>;

/// Calls visit(position, offset) for each row of a box that is not empty: the global position of
/// its first element, and where that lies in memory of these strides (the box's first element at
/// 0). A box without axes has one row of one element.
template <class Visit>
void for_each_row(const Box& box, at::IntArrayRef strides, Visit visit) {
  if (box.empty()) return;
  Position position{};
  for (int axis = 0; axis < box.num_axes(); ++axis) position[axis] = box[axis].begin;
  int64_t offset = 0;
  while (true) {
    visit(position, offset);
    int axis = box.num_axes() - 2;
    for (; axis >= 0; --axis) {
      offset += strides[axis];
      if (++position[axis] < box[axis].end) break;
      offset -= strides[axis] * box[axis].size();
      position[axis] = box[axis].begin;
    }
    if (axis < 0) return;
  }
}

inline int64_t row_length(const Box& box) {
  return box.num_axes() == 0 ? 1 : box[box.num_axes() - 1].size();
}

inline int64_t row_stride(const Box& box, at::IntArrayRef strides) {
  return box.num_axes() == 0 ? 1 : strides[box.num_axes() - 1];
}

/// Calls write(data, strides) with float or double memory that ends up in `target`.
template <class Write>
void write_real(const at::Tensor& target, Write write) {
  const bool wide = target.scalar_type() == at::kDouble;
  if (!target.is_cpu() || (!wide && target.scalar_type() != at::kFloat)) {
    at::Tensor host = at::empty(target.sizes(), wide ? at::kDouble : at::kFloat);
    write_real(host, write);
    target.copy_(host);
  } else if (wide) {
    write(target.data_ptr<double>(), target.strides());
  } else {
    write(target.data_ptr<float>(), target.strides());
  }
}

/// Calls write(data, strides) with int64 memory that ends up in `target`.
template <class Write>
void write_labels(const at::Tensor& target, Write write) {
  if (!target.is_cpu() || target.scalar_type() != at::kLong) {
    at::Tensor host = at::empty(target.sizes(), at::kLong);
    write(host.data_ptr<int64_t>(), host.strides());
    target.copy_(host);
  } else {
    write(target.data_ptr<int64_t>(), target.strides());
  }
}

/// Our own callers must ask for a box inside the value, and bring a target of the box's shape.
inline void check_request(const char* where, const Shape& shape, const Box& box,
                          const at::Tensor& target) {
  TESSERA_CHECK(box.num_axes() == static_cast<int>(shape.size()) && Box::whole(shape).contains(box),
                "[{}] box {} of a value of shape {}", where, to_string(box), to_string(shape));
  TESSERA_CHECK(target.sizes() == at::IntArrayRef(box.shape()), "[{}] box {} into a target of {}",
                where, to_string(box), to_string(target.sizes().vec()));
}

}  // namespace tessera
