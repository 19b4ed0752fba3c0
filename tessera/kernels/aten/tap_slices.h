#pragma once
// Pooling one tap at a time: what tap k of all windows of a piece reads is a part of the image in
// steps of the stride, so that a window's sum or maximum is one call for each of its taps. Outputs
// whose tap lies outside are left out of the slice; nothing is filled.
//
// Example, sums of windows:
//   for (const TapSlice& tap : tap_slices(piece, box)) tap.outputs_of(y).add_(tap.inputs_of(x));

#include <ATen/ATen.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tessera/geometry/divide.h"
#include "tessera/kernels/pool.h"

namespace tessera::aten {

/// Images have five axes (as_volume). Along D, H, W:
struct TapSlice {
  int64_t index = 0;               // of the tap in its window, in scan order
  std::array<int64_t, 3> tap{};    // the same for each axis
  std::array<Range, 3> outputs;    // whose tap lies in the box, counted from the piece's first
  std::array<int64_t, 3> input{};  // of the first of them, counted from the start of the box
  std::array<int64_t, 3> stride{};

  bool empty() const { return outputs[0].empty() || outputs[1].empty() || outputs[2].empty(); }

  /// Of an image of the piece's outputs.
  at::Tensor outputs_of(at::Tensor image) const {
    for (int axis = 0; axis < 3; ++axis)
      image = image.narrow(2 + axis, outputs[axis].begin, outputs[axis].size());
    return image;
  }
  /// Of an image that covers the box.
  at::Tensor inputs_of(at::Tensor image) const {
    for (int axis = 0; axis < 3; ++axis)
      image =
          image.slice(2 + axis, input[axis],
                      input[axis] + (outputs[axis].size() - 1) * stride[axis] + 1, stride[axis]);
    return image;
  }
};

/// The taps that any output has in `box`, in scan order.
inline std::vector<TapSlice> tap_slices(const PoolPiece& piece, const std::array<Range, 3>& box) {
  std::vector<TapSlice> slices;
  const int64_t in_row = piece[2].kernel, in_plane = piece[1].kernel * in_row;
  for (int64_t index = 0; index < piece[0].kernel * in_plane; ++index) {
    TapSlice slice;
    slice.index = index;
    slice.tap = {index / in_plane, index / in_row % piece[1].kernel, index % in_row};
    for (int axis = 0; axis < 3; ++axis) {
      const PoolAxis& along = piece[axis];
      const int64_t first = along.tap(0, slice.tap[axis]);
      const Range outputs =
          intersect(along.out, Range{ceil_div(box[axis].begin - first, along.stride),
                                     ceil_div(box[axis].end - first, along.stride)});
      slice.outputs[axis] = outputs.shifted(-along.out.begin);
      slice.input[axis] = first + outputs.begin * along.stride - box[axis].begin;
      slice.stride[axis] = along.stride;
    }
    if (!slice.empty()) slices.push_back(slice);
  }
  return slices;
}

/// The box that an input holds.
inline std::array<Range, 3> input_box(const PoolPiece& piece) {
  return {piece[0].in, piece[1].in, piece[2].in};
}

/// Of an image that gets sums over windows; narrow numbers would round each addition.
inline at::Tensor zeros_of_sums(const at::Tensor& image) {
  const at::ScalarType type = image.scalar_type();
  return at::zeros(image.sizes(), image.options().dtype(type == at::kBFloat16 ? at::kFloat : type));
}

/// Stores the maxima of windows in `best`, and gives for each the index of the chosen tap; int32.
at::Tensor choose_taps(const PoolPiece& piece, const at::Tensor& x, at::Tensor best);

}  // namespace tessera::aten
