#pragma once
// The input of a band of windows as rows in which neighbouring positions read neighbouring numbers:
// the image itself where it is like that, else a packed copy, with zeros where windows reach over
// the image's end. Strides are gone in the copy: pixels lie by their remainders,
//
//   a b c d        a c
//   e f g h   →    b d     for a step of 2 x 2
//                  e g
//                  f h     [slice][remainder of row][of column][row][column]

#include <algorithm>
#include <cstdint>

#include "tessera/kernels/cpu/depthwise_plan.h"
#include "tessera/kernels/cpu/window_rows.h"

namespace tessera {

/// Some positions of one output plane.
struct DepthwiseBand {
  int64_t sample = 0;
  int64_t depth = 0, row = 0, column = 0;  // the first position
  int64_t rows = 0, columns = 0;
};

template <class T>
class DepthwiseSource {
 public:
  DepthwiseSource(const DepthwisePlan& plan, const StridedImage<const T>& image)
      : plan_(plan),
        image_(image),
        pitch_(plan.block_columns + (plan.span(2) - 1) / plan.step[2]),
        plane_((plan.band_rows + (plan.span(1) - 1) / plan.step[1]) * pitch_) {}

  /// Between rows of positions in a packed copy, and how much a copy of a plane takes.
  int64_t pitch() const { return pitch_; }
  int64_t plane_numbers() const {
    return plane_ * plan_.step[1] * plan_.step[2] * std::ssize(plan_.slices);
  }
  int64_t packed_offset(const DepthwiseTap& tap) const {
    const int64_t remainder = tap.h % plan_.step[1] * plan_.step[2] + tap.w % plan_.step[2];
    return ((tap.slice * plan_.step[1] * plan_.step[2]) + remainder) * plane_ +
           tap.h / plan_.step[1] * pitch_ + tap.w / plan_.step[2];
  }

  /// Whether the windows of the band can read the image as it lies: direct_step() numbers from
  /// column to column, direct_pitch() from row to row.
  bool is_direct(const DepthwiseBand& band) const {
    const auto inside = [&](int axis, int64_t first, int64_t last) {
      return first * plan_.step[axis] + plan_.low[axis] >= 0 &&
             last * plan_.step[axis] + plan_.high[axis] < image_.size[axis];
    };
    return plan_.step[2] <= 2 && image_.stride[2] == 1 && inside(0, band.depth, band.depth) &&
           inside(1, band.row, band.row + band.rows - 1) &&
           inside(2, band.column, band.column + band.columns - 1);
  }
  int64_t direct_step() const { return plan_.step[2]; }
  int64_t direct_pitch() const { return plan_.step[1] * image_.stride[1]; }
  const T* direct_place(const DepthwiseBand& band, int64_t channel, const DepthwiseTap& tap) const {
    return image_.plane(band.sample, channel) +
           (band.depth * plan_.step[0] + plan_.slices[tap.slice]) * image_.stride[0] +
           (band.row * plan_.step[1] + plan_.low[1] + tap.h) * image_.stride[1] +
           band.column * plan_.step[2] + plan_.low[2] + tap.w;
  }

  /// Writes plane_numbers() to `to`.
  void pack(const DepthwiseBand& band, int64_t channel, T* to) const {
    for (const int64_t offset : plan_.slices) {
      const int64_t depth = band.depth * plan_.step[0] + offset;
      const bool is_there = depth >= 0 && depth < image_.size[0];
      const T* slice = image_.plane(band.sample, channel) + depth * image_.stride[0];
      for (int64_t h = 0; h < plan_.step[1]; ++h)
        for (int64_t w = 0; w < plan_.step[2]; ++w, to += plane_)
          pack_remainder(band, is_there ? slice : nullptr, h, w, to);
    }
  }

 private:
  void pack_remainder(const DepthwiseBand& band, const T* slice, int64_t h, int64_t w,
                      T* to) const {
    const int64_t step = plan_.step[2];
    const int64_t first = band.column * step + plan_.low[2] + w;
    const int64_t before = std::clamp<int64_t>((-first + step - 1) / step, 0, pitch_);
    const int64_t room = image_.size[2] - 1 - first;
    const int64_t end = room < 0 ? before : std::clamp(room / step + 1, before, pitch_);
    int64_t row = band.row * plan_.step[1] + plan_.low[1] + h;
    const T* const plane_end = to + plane_;
    if (slice != nullptr && before == 0 && end == pitch_ && step == 1 && plan_.step[1] == 1 &&
        image_.stride[2] == 1 && image_.stride[1] == pitch_ && row >= 0) {
      const int64_t rows = std::clamp<int64_t>(image_.size[1] - row, 0, plane_ / pitch_);
      copy_run(to, slice + row * pitch_ + first, rows * pitch_);
      std::fill_n(to + rows * pitch_, plane_ - rows * pitch_, T(0));
      return;
    }
    for (; to < plane_end; to += pitch_, row += plan_.step[1]) {
      if (slice == nullptr || row < 0 || row >= image_.size[1]) {
        std::fill_n(to, pitch_, T(0));
        continue;
      }
      const T* from = slice + row * image_.stride[1] + (first + before * step) * image_.stride[2];
      copy_row(to, before, from, end - before, step * image_.stride[2]);
    }
  }

  /// Every step-th of `count` numbers, between zeros. Rows are short: their last register begins
  /// before the end of the one before it.
  void copy_row(T* to, int64_t before, const T* from, int64_t count, int64_t step) const {
    constexpr int64_t kAll = kLanes<T>;
    if (count < kAll || before > kAll || pitch_ - before - count > kAll || step > 2) {
      std::fill_n(to, before, T(0));
      copy_run(to + before, from, count, step);
      std::fill(to + before + count, to + pitch_, T(0));
      return;
    }
    store(to, Vector<T>{});
    store(to + pitch_ - kAll, Vector<T>{});
    to += before;
    const auto copy = [&](int64_t i) {
      store(to + i, step == 1 ? load(from + i) : load_every_second(from + 2 * i));
    };
    for (int64_t i = 0; i + kAll < count; i += kAll) copy(i);
    copy(count - kAll);
  }

  const DepthwisePlan& plan_;
  const StridedImage<const T> image_;
  const int64_t pitch_, plane_;  // of a packed copy: between rows, and of one remainder
};

}  // namespace tessera
