#pragma once
// Depthwise convolutions of small planes: as many channels as a register has lanes, side by side.
//
//   channel 0   a0 a1 a2 ..         a0 b0 c0 ..
//   channel 1   b0 b1 b2 ..   ──►   a1 b1 c1 ..     pixel after pixel, with zeros around the image
//   channel 2   c0 c1 c2 ..         a2 b2 c2 ..
//
// Rows of seven pixels then cost what seven pixels cost, whatever the stride.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/kernels/cpu/depthwise_plan.h"
#include "tessera/kernels/cpu/partial_vector.h"

namespace tessera {

/// The planes of some channels, one for each lane. Lanes beyond `count` repeat the last one.
template <class T>
struct LanePlanes {
  T* plane[kLanes<T>];
  int count = 0;
};

/// Where the slices of an image that windows read lie in a buffer of pixels of all lanes, zeros
/// around them: [slice][row][column][lane].
struct LaneBuffer {
  int64_t rows = 0, columns = 0;            // of a slice
  int64_t first_row = 0, first_column = 0;  // of the image's pixel 0, may be negative

  int64_t slice_pixels() const { return rows * columns; }
  int64_t pixel(int64_t row, int64_t column) const { return row * columns + column; }
};

/// Calls visit(row, column, count) for runs of at most a register's lanes.
template <class T, class Visit>
inline void for_lane_runs(int64_t rows, int64_t columns, Visit&& visit) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; column += kLanes<T>)
      visit(row, column, std::min<int64_t>(kLanes<T>, columns - column));
}

/// One slice of all planes, from `offset` on; pixels outside the image are left alone.
template <class T>
void interleave(const LanePlanes<const T>& planes, const StridedImage<const T>& image,
                int64_t offset, const LaneBuffer& buffer, T* to) {
  constexpr int kAll = kLanes<T>;
  // What of the image lies in the buffer.
  const int64_t top = std::max<int64_t>(0, -buffer.first_row),
                left = std::max<int64_t>(0, -buffer.first_column);
  const int64_t bottom = std::min(image.size[1], buffer.rows - buffer.first_row),
                right = std::min(image.size[2], buffer.columns - buffer.first_column);
  const int64_t step = image.stride[2];
  int64_t rows = bottom - top, columns = right - left;
  if (rows <= 0 || columns <= 0) return;
  if (columns == buffer.columns && image.stride[1] == columns * step) {  // one long row
    columns *= rows;
    rows = 1;
  }
  for_lane_runs<T>(rows, columns, [&](int64_t row, int64_t column, int64_t count) {
    const int64_t from = offset + (top + row) * image.stride[1] + (left + column) * step;
    Vector<T> numbers[kAll];
#pragma GCC unroll 16
    for (int lane = 0; lane < kAll; ++lane) {
      const T* pixel = planes.plane[lane] + from;
      if (step == 1) {
        numbers[lane] = load_some(pixel, count);
      } else {
        for (int64_t i = 0; i < count; ++i) numbers[lane][i] = pixel[i * step];
      }
    }
    transpose<T>(numbers);
    T* at =
        to + buffer.pixel(buffer.first_row + top + row, buffer.first_column + left + column) * kAll;
    for (int64_t i = 0; i < count; ++i) store(at + i * kAll, numbers[i]);
  });
}

/// The way back, for `rows` x `columns` pixels without gaps.
template <class T>
void separate(const T* from, int64_t rows, int64_t columns, const LanePlanes<T>& planes,
              const StridedImage<T>& image, int64_t offset) {
  constexpr int kAll = kLanes<T>;
  const int64_t step = image.stride[2];
  if (image.stride[1] == columns * step) {
    columns *= rows;
    rows = 1;
  }
  for_lane_runs<T>(rows, columns, [&](int64_t row, int64_t column, int64_t count) {
    Vector<T> numbers[kAll];
    const T* at = from + (row * columns + column) * kAll;
#pragma GCC unroll 16
    for (int64_t i = 0; i < kAll; ++i) numbers[i] = load(at + std::min(i, count - 1) * kAll);
    transpose<T>(numbers);
    for (int lane = 0; lane < planes.count; ++lane) {
      T* to = planes.plane[lane] + offset + row * image.stride[1] + column * step;
      if (step == 1) {
        store_some(to, numbers[lane], count);
      } else {
        for (int64_t i = 0; i < count; ++i) to[i * step] = numbers[lane][i];
      }
    }
  });
}

/// Some neighbouring positions: each the sum of weights[tap] * from[place[tap]].
template <class T, int kPositions>
inline void sum_positions(const T* from, const int64_t* places, const T* weights, int64_t taps,
                          int64_t step, const T* start, T* to, int64_t to_step) {
  Vector<T> sums[kPositions];
#pragma GCC unroll 16
  for (Vector<T>& sum : sums) sum = load(start);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Vector<T> weight = load(weights + tap * kLanes<T>);
    const T* at = from + places[tap];
#pragma GCC unroll 16
    for (int i = 0; i < kPositions; ++i) sums[i] += weight * load(at + i * step);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kPositions; ++i) store(to + i * to_step, sums[i]);
}

/// A row of `count` positions.
template <class T>
void sum_lane_row(const T* from, const int64_t* places, const T* weights, int64_t taps,
                  int64_t step, const T* start, T* to, int64_t to_step, int64_t count) {
  constexpr int kMost = kNumRegisters == 32 ? 14 : 7;
  int64_t i = 0;
  for (; i + kMost <= count; i += kMost)
    sum_positions<T, kMost>(from + i * step, places, weights, taps, step, start, to + i * to_step,
                            to_step);
  for (; i + 4 <= count; i += 4)
    sum_positions<T, 4>(from + i * step, places, weights, taps, step, start, to + i * to_step,
                        to_step);
  for (; i < count; ++i)
    sum_positions<T, 1>(from + i * step, places, weights, taps, step, start, to + i * to_step,
                        to_step);
}

/// sums[tap] += Σ other[position] * from[place[tap] + position * step] over a row of positions.
template <class T, int kTaps>
inline void add_lane_dots(const T* from, const int64_t* places, int64_t step, int64_t row_step,
                          const T* other, int64_t rows, int64_t columns, T* sums) {
  constexpr int kAll = kLanes<T>;
  Vector<T> dots[kTaps];
#pragma GCC unroll 16
  for (int k = 0; k < kTaps; ++k) dots[k] = load(sums + k * kAll);
  for (int64_t row = 0; row < rows; ++row, from += row_step)
    for (int64_t i = 0; i < columns; ++i, other += kAll) {
      const Vector<T> factor = load(other);
#pragma GCC unroll 16
      for (int k = 0; k < kTaps; ++k) dots[k] += factor * load(from + places[k] + i * step);
    }
#pragma GCC unroll 16
  for (int k = 0; k < kTaps; ++k) store(sums + k * kAll, dots[k]);
}

/// As many taps at a time as there are registers for.
template <class T>
void add_lane_dots(const T* from, const std::vector<int64_t>& places, int64_t step,
                   int64_t row_step, const T* other, int64_t rows, int64_t columns, T* sums) {
  constexpr size_t kMost = kNumRegisters == 32 ? 13 : 9;
  size_t tap = 0;
  const auto add = [&]<int kTaps>(std::integral_constant<int, kTaps>) {
    for (; tap + kTaps <= places.size(); tap += kTaps)
      add_lane_dots<T, kTaps>(from, &places[tap], step, row_step, other, rows, columns,
                              sums + static_cast<int64_t>(tap) * kLanes<T>);
  };
  if (places.size() % kMost != 9) add(std::integral_constant<int, kMost>());
  add(std::integral_constant<int, 9>());
  add(std::integral_constant<int, 5>());
  add(std::integral_constant<int, 1>());
}

}  // namespace tessera
