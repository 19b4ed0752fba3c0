#pragma once
// Squares of pixels in registers: every lane has the square of another tile. Tiles are neighbours
// along a row of tiles as far as the row goes, so a register has a few segments of a row each:
//
//   lanes  0 .. 8   tiles 5 .. 13 of a row         pixels  20 21 22 23 | 24 25 26 27 | ...
//   lanes  9 .. 15  tiles 0 .. 6 of the next       pixels   0  1  2  3 |  4  5  6  7 | ...
//
// The pixels of a segment lie in one run of memory, so they are read and written by whole registers
// and sorted there.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/kernels/cpu/bf16_registers.h"
#include "tessera/kernels/cpu/strided_image.h"
#include "tessera/kernels/cpu/window_rows.h"
#include "tessera/kernels/cpu/winograd_transform.h"

namespace tessera::winograd {

/// Neighbouring tiles and their squares of pixels, which may reach over the borders of the image.
struct LaneSegment {
  int64_t begin = 0, end = 0;  // lanes
  int64_t offset = 0;  // of the pixel where the square of lane 0 begins, or would begin, in a slice
  int64_t first_pixel = 0, end_pixel = 0;  // from there along a row, those inside the image
  int64_t first_row = 0, end_row = 0;      // of the squares, those inside the image
};

/// The tiles of one register.
using LaneSegments = std::span<const LaneSegment>;

/// Of many tiles, register by register.
class TileRegisters {
 public:
  /// Squares of `size` pixels; the first tile's begins at first_h, first_w.
  template <class T>
  TileRegisters(const StridedImage<T>& image, const std::vector<WindowRun>& runs, int64_t size,
                int64_t first_h, int64_t first_w) {
    constexpr int64_t kAll = kLanes<std::remove_const_t<T>>;
    for (const WindowRun& run : runs) {
      const auto index = static_cast<size_t>(run.column / kAll);
      while (ends_.size() <= index) ends_.push_back(std::ssize(segments_));
      segments_.push_back(segment(image, run, run.column % kAll, size, first_h, first_w));
      ++ends_[index];
    }
  }

  LaneSegments at(int64_t index) const {
    if (index >= std::ssize(ends_)) return {};
    const int64_t begin = index == 0 ? 0 : ends_[static_cast<size_t>(index) - 1];
    return {segments_.data() + begin, segments_.data() + ends_[static_cast<size_t>(index)]};
  }

 private:
  template <class T>
  static LaneSegment segment(const StridedImage<T>& image, const WindowRun& run, int64_t lane,
                             int64_t size, int64_t first_h, int64_t first_w) {
    const int64_t row = run.at[1] * kOut + first_h;
    const int64_t column = (run.at[2] - lane) * kOut + first_w;
    const int64_t end = lane + run.length;
    return {lane,
            end,
            run.sample * image.batch_stride + row * image.stride[1] + column,
            std::max(lane * kOut, -column),
            std::min(end * kOut + size - kOut, image.size[2] - column),
            std::clamp<int64_t>(-row, 0, size),
            std::clamp<int64_t>(image.size[1] - row, 0, size)};
  }

  std::vector<LaneSegment> segments_;
  std::vector<int64_t> ends_;
};

/// The pixels [first, end) of a row from `row` on, those of a tile in one lane: to[i] has the
/// i-th pixel of every square, up to kSize of them, of which the last two are the next lane's.
template <int kSize, class T>
inline void load_pixels(const T* row, int64_t first, int64_t end, Vector<T> (&to)[kSize]) {
  constexpr int kAll = kLanes<T>;
  Vector<T> pixels[kOut], rest = {};
  if (first <= 0 && end >= kOut * kAll + kSize - kOut) {
    for (int i = 0; i < kOut; ++i) pixels[i] = load(row + i * kAll);
    if constexpr (kSize > kOut) rest = load_between(row + kOut * kAll, 0, kSize - kOut);
  } else {
    const auto load_part = [&](int64_t begin) {
      const int64_t from = std::clamp<int64_t>(first - begin, 0, kAll);
      return load_between(row + begin, from, std::clamp<int64_t>(end - begin, from, kAll));
    };
    for (int i = 0; i < kOut; ++i) pixels[i] = load_part(i * kAll);
    if constexpr (kSize > kOut) rest = load_part(kOut * kAll);
  }
  split_by_four<T>(pixels);
  for (int i = 0; i < kOut; ++i) to[i] = pixels[i];
  if constexpr (kSize > kOut) {
    constexpr auto kNext = [](int i) { return i + 1; };
    constexpr auto kNextOrSecond = [](int i) { return i + 1 < kAll ? i + 1 : kAll + 1; };
    to[kOut] = pick(pixels[0], rest, sequence_of<kAll, kNext>());
    to[kOut + 1] = pick(pixels[1], rest, sequence_of<kAll, kNextOrSecond>());
  }
}

/// A row of the squares of a register of tiles; zeros outside the image.
template <int kSize, class T>
inline void load_square_row(const T* slice, int64_t row_stride, LaneSegments segments, int64_t row,
                            Vector<T> (&to)[kSize]) {
  constexpr int64_t kAll = kLanes<T>;
  const auto load_segment = [&](const LaneSegment& segment, Vector<T>(&pixels)[kSize]) {
    const bool inside = row >= segment.first_row && row < segment.end_row;
    load_pixels<kSize>(slice + segment.offset + row * row_stride, segment.first_pixel,
                       inside ? segment.end_pixel : segment.first_pixel, pixels);
  };
  if (segments.size() == 1 && segments[0].end - segments[0].begin == kAll)
    return load_segment(segments[0], to);
  for (Vector<T>& pixels : to) pixels = Vector<T>{};
  for (const LaneSegment& segment : segments) {
    Vector<T> pixels[kSize];
    load_segment(segment, pixels);
    for (int i = 0; i < kSize; ++i)
      to[i] = blend_between<T>(to[i], pixels[i], segment.begin, segment.end);
  }
}

/// Writes a row of tiles, as far as it lies inside the image.
template <class T>
inline void store_tile_row(T* slice, int64_t row_stride, LaneSegments segments, int64_t row,
                           Vector<T> (&pixels)[kOut]) {
  constexpr int64_t kAll = kLanes<T>;
  join_by_four<T>(pixels);
  for (const LaneSegment& segment : segments) {
    if (row >= segment.end_row) continue;
    T* to = slice + segment.offset + row * row_stride;
    for (int64_t i = 0; i < kOut; ++i) {
      const int64_t first = std::clamp<int64_t>(segment.first_pixel - i * kAll, 0, kAll);
      const int64_t end = std::clamp<int64_t>(segment.end_pixel - i * kAll, first, kAll);
      if (end - first == kAll)
        store(to + i * kAll, pixels[i]);
      else if (end > first)
        store_between(to + i * kAll, pixels[i], first, end);
    }
  }
}

/// Has the memory bring the squares. Their rows are short and far apart, so that the processor does
/// not guess them by itself.
template <class T>
inline void prefetch_squares(const T* slice, int64_t row_stride, LaneSegments segments) {
  constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
  for (const LaneSegment& segment : segments)
    for (int64_t row = segment.first_row; row < segment.end_row; ++row)
      for (int64_t at = segment.first_pixel; at < segment.end_pixel; at += kLine)
        __builtin_prefetch(slice + segment.offset + row * row_stride + at);
}

}  // namespace tessera::winograd
