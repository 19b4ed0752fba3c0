#pragma once
// How the kernels of pooling walk a piece: forward by parts of output rows, each part scanning one
// tap of all its windows at a time, so that the inner loop runs along contiguous memory; backward
// by planes, because windows of different rows write the same inputs.

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tessera/kernels/cpu/image_view.h"
#include "tessera/kernels/pool.h"

namespace tessera {

/// Some columns of one output row of one plane, in global coordinates.
struct RowPart {
  static constexpr int64_t kColumns = 1024;  // what a kernel keeps per column stays in L1

  const PoolPiece& piece;
  int64_t plane;
  int64_t d;
  int64_t h;
  Range columns;

  /// Where its first element lies in a plane of the piece's view.
  int64_t offset(const std::array<int64_t, 5>& strides) const {
    return (d - piece[0].out.begin) * strides[2] + (h - piece[1].out.begin) * strides[3] +
           (columns.begin - piece[2].out.begin);
  }
  /// Index of its first element in the piece.
  int64_t index() const {
    const int64_t row =
        (plane * piece[0].out.size() + d - piece[0].out.begin) * piece[1].out.size() + h -
        piece[1].out.begin;
    return row * piece[2].out.size() + columns.begin - piece[2].out.begin;
  }
};

/// Calls visit(part) for all parts of a plane's rows, in order.
template <class Visit>
void for_row_parts_of_plane(const PoolPiece& piece, int64_t plane, Visit&& visit) {
  const auto& [depth, height, width] = piece;
  for (int64_t d = depth.out.begin; d < depth.out.end; ++d)
    for (int64_t h = height.out.begin; h < height.out.end; ++h)
      for (int64_t w = width.out.begin; w < width.out.end; w += RowPart::kColumns)
        visit(RowPart{piece, plane, d, h, {w, std::min(w + RowPart::kColumns, width.out.end)}});
}

/// Calls visit(part) for all parts of all rows, in parallel.
template <class Visit>
void for_row_parts(const PoolPiece& piece, int64_t num_planes, Visit&& visit) {
  const auto& [depth, height, width] = piece;
  const int64_t per_row = (width.out.size() + RowPart::kColumns - 1) / RowPart::kColumns;
  const int64_t per_plane = depth.out.size() * height.out.size() * per_row;
  const int64_t grain = std::max<int64_t>(1, 16 * RowPart::kColumns / width.out.size());
  at::parallel_for(0, num_planes * per_plane, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % per_plane / per_row;
      const int64_t column = width.out.begin + i % per_row * RowPart::kColumns;
      visit(RowPart{piece,
                    i / per_plane,
                    depth.out.begin + row / height.out.size(),
                    height.out.begin + row % height.out.size(),
                    {column, std::min(column + RowPart::kColumns, width.out.end)}});
    }
  });
}

/// Sets each plane of the gradient to zero and calls add(plane) for it, in parallel.
template <class T, class Add>
void for_zeroed_planes(const ImageView<T>& grad_x, Add&& add) {
  at::parallel_for(0, grad_x.num_planes(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      grad_x.fill_plane(plane, T(0));
      add(plane);
    }
  });
}

/// Visits, in scan order, the taps of the part's windows that lie inside the image: visit(k, d, h,
/// w, outputs). Here k is the tap's index in the window; `outputs` are those of the columns for
/// which it lies inside; d, h, w is where it lies for the first of them, counted from the start of
/// the needed box, and it lies one stride further along w for each next one.
template <class Visit>
void for_taps(const RowPart& part, Visit&& visit) {
  const auto& [depth, height, width] = part.piece;
  const Range depth_taps = depth.taps_inside(part.d), height_taps = height.taps_inside(part.h);
  for (int64_t kd = depth_taps.begin; kd < depth_taps.end; ++kd)
    for (int64_t kh = height_taps.begin; kh < height_taps.end; ++kh)
      for (int64_t kw = 0; kw < width.kernel; ++kw) {
        const Range outputs = intersect(width.outputs_inside(kw), part.columns);
        if (outputs.empty()) continue;
        visit((kd * height.kernel + kh) * width.kernel + kw, depth.tap(part.d, kd) - depth.in.begin,
              height.tap(part.h, kh) - height.in.begin,
              width.tap(outputs.begin, kw) - width.in.begin, outputs);
      }
}

/// Calls run.template operator()<scalar type>(pointer to the choices).
template <class Run>
void on_choices(const at::Tensor& real, const at::Tensor& choices, Run&& run) {
  on_numbers_of(real, [&]<class T>() {
    if (choices.scalar_type() == at::kByte)
      run.template operator()<T>(choices.data_ptr<uint8_t>());
    else
      run.template operator()<T>(choices.data_ptr<int32_t>());
  });
}

}  // namespace tessera
