#pragma once
// The numbers that windows over an image read, as the rows of a matrix: a row for each channel and
// tap, a column for each window. Blocks of columns are packed in turn, so the matrix never exists
// as a whole:
//
//             windows begin .. begin + count
//   c0 tap0  [ . . . . . . . . . . . . . . . ]
//   c0 tap1  [ . . . . . . . . . . . . . . . ]     zeros where a window reads outside the image
//   c1 tap0  [ ...

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "tessera/kernels/cpu/bf16_pairs.h"
#include "tessera/kernels/cpu/strided_image.h"

namespace tessera {

/// One place of a window, and which entry of the kernel it is multiplied with.
struct Tap {
  SpaceAxes offset;
  int64_t entry = 0;
};

/// Windows stand at count positions along each axis; at position j a tap reads
/// j * step + tap.offset, in coordinates of the image.
struct Windows {
  SpaceAxes count{};
  SpaceAxes step{1, 1, 1};
  std::vector<Tap> taps;

  int64_t num_positions() const { return count[0] * count[1] * count[2]; }
};

/// Neighbours along the last axis, within one sample.
struct WindowRun {
  int64_t sample = 0;
  SpaceAxes at{};      // of the first
  int64_t column = 0;  // of the first, in its block
  int64_t length = 0;
};

/// The windows begin .. begin + num_columns of all samples, in runs that end where `per_panel`
/// columns do.
inline std::vector<WindowRun> runs_of_windows(const SpaceAxes& count, int64_t begin,
                                              int64_t num_columns, int64_t per_panel) {
  std::vector<WindowRun> runs;
  int64_t rest = begin;
  const int64_t w = rest % count[2];
  const int64_t h = (rest /= count[2]) % count[1];
  const int64_t d = (rest /= count[1]) % count[0];
  WindowRun run{rest / count[0], {d, h, w}, 0, 0};
  while (run.column < num_columns) {
    run.length = std::min(
        {count[2] - run.at[2], num_columns - run.column, per_panel - run.column % per_panel});
    runs.push_back(run);
    run.column += run.length;
    run.at[2] += run.length;
    for (int axis = 2; axis >= 0 && run.at[axis] == count[axis]; --axis) {
      run.at[axis] = 0;
      ++(axis > 0 ? run.at[axis - 1] : run.sample);
    }
  }
  return runs;
}

/// Not a call of memcpy: most runs are short. Numbers may lie in memory in different ways.
template <class To, class From>
inline void copy_run(To* to, const From* from, int64_t length) {
  int64_t i = 0;
  for (; i + kLanes<To> <= length; i += kLanes<To>) store(to + i, load(from + i));
  const int64_t rest = length - i;
  if constexpr (!std::is_same_v<To, From>) {
    if (rest > 0) store_between(to + i, load_between(from + i, 0, rest), 0, rest);
    return;
  }
  const auto copy_if = [&](auto count) {
    if ((rest & count.value) == 0) return;
    std::memcpy(to + i, from + i, count.value * sizeof(To));
    i += count.value;
  };
  copy_if(std::integral_constant<int64_t, 16>());
  copy_if(std::integral_constant<int64_t, 8>());
  copy_if(std::integral_constant<int64_t, 4>());
  copy_if(std::integral_constant<int64_t, 2>());
  copy_if(std::integral_constant<int64_t, 1>());
}

/// Every step-th number from `from` on.
template <class T>
inline void copy_run(T* to, const T* from, int64_t length, int64_t step) {
  int64_t i = 0;
  if (step == 1) return copy_run(to, from, length);
  if (step == 2) {
    for (; i + kLanes<T> <= length; i += kLanes<T>) store(to + i, load_every_second(from + 2 * i));
    const int64_t rest = length - i;
    if (rest > 0) store_between(to + i, load_every_second(from + 2 * i, rest), 0, rest);
    return;
  }
  for (; i < length; ++i) to[i] = from[i * step];
}

/// The opposite: to every step-th number from `to` on.
template <class To, class From>
inline void spread_run(To* to, const From* from, int64_t length, int64_t step) {
  if (step == 1) return copy_run(to, from, length);
  int64_t i = 0;
  if (step == 2) {
    for (; i + kLanes<To> <= length; i += kLanes<To>)
      store_every_second(to + 2 * i, load(from + i), kLanes<To>);
    const int64_t rest = length - i;
    if (rest > 0) store_every_second(to + 2 * i, load_between(from + i, 0, rest), rest);
    return;
  }
  for (; i < length; ++i) to[i * step] = from[i];
}

template <class T>
class WindowRows {
 public:
  /// Channels from `first_channel` on.
  WindowRows(const StridedImage<const T>& image, const Windows& windows, int64_t first_channel)
      : image_(image), windows_(windows), first_channel_(first_channel) {}

  int64_t per_channel() const { return std::ssize(windows_.taps); }

  /// The columns that pack() writes: `runs` in panels of `per_panel` columns, `panel_stride` apart;
  /// zeros after them up to `padded`.
  void set_columns(const std::vector<WindowRun>& runs, int64_t per_panel, int64_t panel_stride,
                   int64_t padded) {
    copies_.clear();
    for (const Tap& tap : windows_.taps)
      for (const WindowRun& run : runs)
        add_copy(tap, run, place(run.column, per_panel, panel_stride));
    per_tap_ = std::ssize(runs);
    const int64_t end = runs.back().column + runs.back().length;
    rest_to_ = place(end, per_panel, panel_stride);
    rest_ = padded - end;
  }

  /// Rows [begin, end), `row_stride` apart.
  void pack(int64_t begin, int64_t end, T* to, int64_t row_stride) const {
    for (int64_t row = begin; row < end; ++row, to += row_stride) {
      const T* plane = image_.plane(0, first_channel_ + row / per_channel());
      const int64_t tap = row % per_channel();
      const Copy* copy = &copies_[tap * per_tap_];
      if (tap == 0) fetch_channel(row / per_channel() + kChannelsAhead);
      for (int64_t i = 0; i < per_tap_; ++i) run_copy(copy[i], plane, to);
      std::fill_n(to + rest_to_, rest_, T(0));
    }
  }

 private:
  struct Copy {
    int64_t to, from;
    int64_t before, length, after;  // zeros, numbers of the image, zeros
  };

  static constexpr int64_t kChannelsAhead = 4;

  /// Asks for what the first tap reads of a channel: runs in it are too short for the machine to
  /// see what comes next.
  void fetch_channel(int64_t channel) const {
    if (first_channel_ + channel >= image_.channels) return;
    const T* plane = image_.plane(0, first_channel_ + channel);
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < per_tap_; ++i) {
      const int64_t numbers = copies_[i].length * windows_.step[2] * image_.stride[2];
      for (int64_t at = 0; at < numbers; at += kLine)
        __builtin_prefetch(plane + copies_[i].from + at);
    }
  }

  static int64_t place(int64_t column, int64_t per_panel, int64_t panel_stride) {
    return column / per_panel * panel_stride + column % per_panel;
  }

  void add_copy(const Tap& tap, const WindowRun& run, int64_t to) {
    int64_t from = run.sample * image_.batch_stride;
    for (int axis = 0; axis < 2; ++axis) {
      const int64_t at = run.at[axis] * windows_.step[axis] + tap.offset[axis];
      if (at < 0 || at >= image_.size[axis]) {
        copies_.push_back({to, 0, run.length, 0, 0});
        return;
      }
      from += at * image_.stride[axis];
    }
    const int64_t step = windows_.step[2];
    const int64_t first = run.at[2] * step + tap.offset[2];
    const int64_t before = std::clamp<int64_t>((-first + step - 1) / step, 0, run.length);
    const int64_t room = image_.size[2] - 1 - first;  // to the last pixel
    const int64_t end = room < 0 ? before : std::clamp(room / step + 1, before, run.length);
    from += (first + before * step) * image_.stride[2];
    copies_.push_back({to, from, before, end - before, run.length - end});
  }

  void run_copy(const Copy& copy, const T* plane, T* to) const {
    to += copy.to;
    if (copy.before > 0) to = std::fill_n(to, copy.before, T(0));
    copy_run(to, plane + copy.from, copy.length, windows_.step[2] * image_.stride[2]);
    if (copy.after > 0) std::fill_n(to + copy.length, copy.after, T(0));
  }

  const StridedImage<const T> image_;
  const Windows& windows_;
  const int64_t first_channel_;
  std::vector<Copy> copies_;  // of all runs for each tap
  int64_t per_tap_ = 0, rest_to_ = 0, rest_ = 0;
};

/// The rows as products take them.
template <class Stored>
class PackedWindows : public WindowRows<Stored> {
 public:
  PackedWindows(const StridedImage<const Stored>& image, const Windows& windows,
                int64_t first_channel, int64_t /*num_channels*/)
      : WindowRows<Stored>(image, windows, first_channel) {}
};

/// The same bits, of which only the place is of interest.
template <class T, class Other>
StridedImage<T> seen_as(const StridedImage<Other>& image) {
  return {reinterpret_cast<T*>(image.data),
          image.batch,
          image.channels,
          image.batch_stride,
          image.channel_stride,
          image.size,
          image.stride};
}

/// Two rows at a time, as pairs. The last one may be alone: its partners are zeros.
template <>
class PackedWindows<Bf16> {
 public:
  PackedWindows(const StridedImage<const Bf16>& image, const Windows& windows,
                int64_t first_channel, int64_t num_channels)
      : num_rows_(num_channels * std::ssize(windows.taps)),
        rows_(seen_as<const uint16_t>(image), windows, first_channel) {}

  uint16_t* unpacked = nullptr;  // memory for two rows of columns

  void set_columns(const std::vector<WindowRun>& runs, int64_t per_panel, int64_t panel_stride,
                   int64_t padded) {
    per_panel_ = per_panel;
    panel_stride_ = panel_stride;
    columns_ = padded;
    rows_.set_columns(runs, padded, 0, padded);
  }

  /// Pairs of rows [begin, end), `pair_stride` apart.
  void pack(int64_t begin, int64_t end, Bf16Pair* to, int64_t pair_stride) const {
    for (int64_t pair = begin; pair < end; ++pair, to += pair_stride) {
      rows_.pack(2 * pair, std::min(2 * pair + 2, num_rows_), unpacked, columns_);
      if (2 * pair + 1 == num_rows_) std::fill_n(unpacked + columns_, columns_, 0);
      interleave(unpacked, unpacked + columns_, columns_, per_panel_, panel_stride_, to);
    }
  }

 private:
  const int64_t num_rows_;
  WindowRows<uint16_t> rows_;
  int64_t per_panel_ = 0, panel_stride_ = 0, columns_ = 0;
};

}  // namespace tessera
