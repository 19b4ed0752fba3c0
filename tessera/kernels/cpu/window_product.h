#pragma once
// out[n, k, j] = bias[k] + Σ over rows (c, tap) of weight[k, c, tap] * windows[row, j], computed as
//
//                  columns: a block of windows
//                 ┌────────────────┐
//        rows     │ panels of 2    │   packed for each block of rows, in the cache; read where they
//                 │ registers each │   lie, where windows are neighbouring pixels of one sample
//                 └────────────────┘
//   weight panel  ┌────────────────┐
//   of 14 x rows  │ 14 x 2 sums    │   in registers
//                 └────────────────┘
//
// Memory besides the images: the packed weight, and for each thread a block of some 100 KiB.

#include <ATen/Parallel.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tessera/kernels/cpu/panels.h"
#include "tessera/kernels/cpu/strided_image.h"
#include "tessera/kernels/cpu/thread_buffer.h"
#include "tessera/kernels/cpu/window_rows.h"

namespace tessera {

/// What images in memory as Stored, and weights, are packed as: an entry stands for kTerms numbers.
template <class Stored>
struct Packing {
  using Entry = Stored;
  static constexpr int64_t kTerms = 1;
};
template <>
struct Packing<Bf16> {
  using Entry = Bf16Pair;
  static constexpr int64_t kTerms = 2;
};

/// weight[k, c, entry] at data + k * out_stride + c * in_stride + entry.
template <class T>
struct WindowWeight {
  const T* data = nullptr;
  int64_t out_stride = 0, in_stride = 0;
};

/// Window j writes the pixel j * step + begin.
struct OutputLattice {
  SpaceAxes step{1, 1, 1};
  SpaceAxes begin{};
};

/// The channels of one group.
struct GroupChannels {
  int64_t first_in = 0, num_in = 0;
  int64_t first_out = 0, num_out = 0;
};

/// Output channels in panels of equal height, as far as they divide.
class RowPanels {
 public:
  explicit RowPanels(int64_t rows)
      : rows_(rows),
        count_((rows + kPanelRows - 1) / kPanelRows),
        height_((rows + count_ - 1) / count_) {}

  int64_t count() const { return count_; }
  int64_t height() const { return height_; }
  /// Of the end, all rows.
  int64_t first_row(int64_t panel) const { return std::min(panel * height_, rows_); }
  int64_t rows_of(int64_t panel) const { return first_row(panel + 1) - first_row(panel); }
  /// How many panels fit where a row takes this much; at least one. The last one may be lower.
  int64_t within(size_t room, int64_t per_row) const {
    const int64_t rows = static_cast<int64_t>(room) / per_row;
    return rows >= rows_ ? count_ : std::clamp<int64_t>(rows / height_, 1, count_);
  }

 private:
  int64_t rows_, count_, height_;
};

/// Calls run(first panel, end) for as many panels at a time as there is room for, about the same
/// number each time.
template <class Run>
void for_panels_that_fit(const RowPanels& panels, int64_t at_once, Run&& run) {
  const int64_t rounds = (panels.count() + at_once - 1) / at_once;
  for (int64_t round = 0; round < rounds; ++round)
    run(round * panels.count() / rounds, (round + 1) * panels.count() / rounds);
}

template <class Stored>
class WindowProduct {
  using T = Number<Stored>;
  using Entry = typename Packing<Stored>::Entry;
  static constexpr int64_t kTerms = Packing<Stored>::kTerms;

 public:
  WindowProduct(const StridedImage<const Stored>& in, const Windows& windows,
                const WindowWeight<T>& weight, const T* bias, const StridedImage<Stored>& out,
                const OutputLattice& lattice, const GroupChannels& group, std::span<Entry> packed)
      : in_(in),
        windows_(windows),
        bias_(bias),
        out_(out),
        lattice_(lattice),
        group_(group),
        num_rows_(group.num_in * std::ssize(windows.taps)),
        depth_((num_rows_ + kTerms - 1) / kTerms),
        weight_(weight),
        rows_at_once_(equal_parts(depth_, kMostRowsAtOnce)),
        panels_(group.num_out),
        packed_(packed),
        reads_pixels_(reads_pixels()),
        writes_all_pixels_(writes_all_pixels()) {}

  void run() {
    for_panels_that_fit(panels_, panels_.within(packed_.size(), std::max<int64_t>(depth_, 1)),
                        [&](int64_t first, int64_t end) { run_panels(first, end); });
  }

 private:
  void run_panels(int64_t first, int64_t end) {
    first_panel_ = first;
    end_panel_ = end;
    pack_weight();
    const int64_t total = out_.batch * windows_.num_positions();
    const int64_t column_panels = (total + kColumns - 1) / kColumns,
                  row_panels = end_panel_ - first_panel_;
    const int64_t threads = at::get_num_threads();
    const int64_t least_blocks = (column_panels + panels_at_once() - 1) / panels_at_once();
    // As many for each thread; where there are too few, rows of the weight are cut, too.
    const int64_t blocks =
        std::min(column_panels, (least_blocks + threads - 1) / threads * threads);
    const int64_t shares = std::clamp<int64_t>(threads / blocks, 1, row_panels);
    at::parallel_for(0, blocks * shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = task / shares, share = task % shares;
        const int64_t first = block * column_panels / blocks * kColumns;
        const int64_t last = std::min((block + 1) * column_panels / blocks * kColumns, total);
        run_block(first, last - first, first_panel_ + share * row_panels / shares,
                  first_panel_ + (share + 1) * row_panels / shares);
      }
    });
  }

  static constexpr int64_t kColumns = kPanelColumns<T>;
  static constexpr int64_t kMostRowsAtOnce =
      384;  // entries: a panel of the weight stays in the first cache
  /// The size of the fewest parts that are no larger than this.
  static int64_t equal_parts(int64_t size, int64_t most) {
    const int64_t parts = std::max<int64_t>(1, (size + most - 1) / most);
    return std::max<int64_t>(1, (size + parts - 1) / parts);
  }
  static constexpr int64_t kBlockBytes = 512 << 10;  // of columns and of sums: half of the second

  int64_t panels_at_once() const {
    const int64_t most = kBlockBytes / static_cast<int64_t>(sizeof(T)) /
                         (group_.num_out + std::min(depth_, rows_at_once_)) / kColumns;
    return std::clamp<int64_t>(most, 1, 16);
  }

  int64_t packed_rows() const {
    return panels_.first_row(end_panel_) - panels_.first_row(first_panel_);
  }
  /// A panel's part of a block of the depth: [block][panel][depth][row].
  Entry* packed_panel(int64_t panel, int64_t begin, int64_t end) const {
    const int64_t rows_before = panels_.first_row(panel) - panels_.first_row(first_panel_);
    return packed_.data() + begin * packed_rows() + rows_before * (end - begin);
  }

  void pack_weight() const {
    at::parallel_for(first_panel_, end_panel_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        const T* from = weight_.data + panels_.first_row(panel) * weight_.out_stride;
        const int64_t rows = panels_.rows_of(panel);
        for (int64_t block = 0; block < depth_; block += rows_at_once_) {
          const int64_t block_end = std::min(block + rows_at_once_, depth_);
          pack_rows(from, rows, block, block_end, packed_panel(panel, block, block_end));
        }
      }
    });
  }

  /// [depth][row], in the order in which the weight lies in memory.
  void pack_rows(const T* from, int64_t rows, int64_t begin, int64_t end, Entry* to) const {
    const int64_t taps = std::ssize(windows_.taps);
    const auto depth_offset = [&](int64_t row) {
      return row / taps * weight_.in_stride + windows_.taps[row % taps].entry;
    };
    if constexpr (kTerms == 2) {
      for (int64_t pair = begin; pair < end; ++pair, to += rows) {
        const int64_t row = 2 * pair;
        const T* first = from + depth_offset(row);
        const T* second = row + 1 < num_rows_ ? from + depth_offset(row + 1) : nullptr;
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t at = i * weight_.out_stride;
          to[i] = pair_of(first[at], second != nullptr ? second[at] : 0);
        }
      }
      return;
    }
    if (weight_.out_stride < weight_.in_stride) {
      for (int64_t row = begin; row < end; ++row, to += rows)
        for (int64_t i = 0; i < rows; ++i) to[i] = from[depth_offset(row) + i * weight_.out_stride];
      return;
    }
    int64_t offsets[kMostRowsAtOnce];
    for (int64_t row = begin; row < end; ++row) offsets[row - begin] = depth_offset(row);
    for (int64_t i = 0; i < rows; ++i, from += weight_.out_stride)
      for (int64_t row = 0; row < end - begin; ++row) to[row * rows + i] = from[offsets[row]];
  }

  void run_block(int64_t begin, int64_t count, int64_t first_panel, int64_t end_panel) const {
    const std::vector<WindowRun> runs = runs_of_windows(windows_.count, begin, count, kColumns);
    const int64_t columns = (count + kColumns - 1) / kColumns * kColumns;
    const int64_t depth = std::min(depth_, rows_at_once_);
    // Not a multiple of what the sets of a cache repeat after.
    const int64_t panel_stride = depth * kColumns + 3 * kLanes<T>;
    const int64_t rows_size = columns / kColumns * panel_stride;
    T* memory = thread_buffer<T>(rows_size + columns * (group_.num_out + kTerms - 1));
    auto* rows = reinterpret_cast<Entry*>(memory);
    T* sums = memory + rows_size;
    PackedWindows<Stored> windows(in_, windows_, group_.first_in, group_.num_in);
    std::vector<WindowRun> packed;
    if constexpr (kTerms == 2) {
      windows.unpacked = reinterpret_cast<uint16_t*>(sums + columns * group_.num_out);
      packed = runs_of_windows(windows_.count, begin, count, columns);
    } else {
      for (const WindowRun& run : runs)
        if (!reads_in_place(run)) packed.push_back(run);
    }
    if (!packed.empty()) {
      const int64_t last = packed.back().column + packed.back().length - 1;
      windows.set_columns(packed, kColumns, panel_stride, (last / kColumns + 1) * kColumns);
    }
    int64_t block = 0;
    do {  // once where there is no tap at all
      const int64_t end = std::min(block + rows_at_once_, depth_);
      if (!packed.empty()) windows.pack(block, end, rows, kColumns);
      for (int64_t panel = first_panel; panel < end_panel; ++panel)
        multiply(panel, block, end, rows, panel_stride, runs, sums);
      block = end;
    } while (block < depth_);
    bool written = false;  // the panel of columns in which a run lies
    for (const WindowRun& run : runs) {
      if (run.column % kColumns == 0) written = writes_in_place(run);
      if (!written) write(run, sums, panels_.first_row(first_panel), panels_.first_row(end_panel));
    }
  }

  /// Whether windows are the pixels of the image, each for itself and as products take them.
  bool reads_pixels() const {
    return kTerms == 1 && windows_.taps.size() == 1 && windows_.taps[0].offset == SpaceAxes{} &&
           windows_.step == SpaceAxes{1, 1, 1} && windows_.count == in_.size &&
           has_contiguous_rows(in_);
  }

  /// Whether the windows write all pixels of the image, which lie one after the other.
  bool writes_all_pixels() const {
    return lattice_.step == SpaceAxes{1, 1, 1} && lattice_.begin == SpaceAxes{} &&
           windows_.count == out_.size && has_contiguous_pixels(out_);
  }

  /// A panel of columns that is one run of pixels need not be packed.
  bool reads_in_place(const WindowRun& run) const {
    return reads_pixels_ && run.length == kColumns;
  }

  const Stored* pixel_read(const WindowRun& run, int64_t channel) const {
    const Stored* plane = in_.plane(run.sample, group_.first_in + channel);
    for (int axis = 0; axis < 3; ++axis) plane += run.at[axis] * in_.stride[axis];
    return plane;
  }

  /// A panel of columns, of which this is the first run, goes where it belongs if its pixels are
  /// neighbours: of one row, or of one sample.
  bool writes_in_place(const WindowRun& run) const {
    if (kTerms == 2) return false;
    if (run.length == kColumns) return lattice_.step[2] * out_.stride[2] == 1;
    const int64_t position =
        (run.at[0] * windows_.count[1] + run.at[1]) * windows_.count[2] + run.at[2];
    return writes_all_pixels_ && position + kColumns <= windows_.num_positions();
  }

  Stored* pixel(const WindowRun& run, int64_t channel) const {
    Stored* plane = out_.plane(run.sample, group_.first_out + channel);
    for (int axis = 0; axis < 3; ++axis)
      plane += (run.at[axis] * lattice_.step[axis] + lattice_.begin[axis]) * out_.stride[axis];
    return plane;
  }

  /// Sums lie in panels of columns: [panel][row][column].
  void multiply(int64_t panel, int64_t begin, int64_t end, const Entry* rows, int64_t panel_stride,
                const std::vector<WindowRun>& runs, T* sums) const {
    const Entry* weights = packed_panel(panel, begin, end);
    PanelEnds<T> ends;
    for (const WindowRun& run : runs) {
      if (run.column % kColumns != 0) continue;
      const int64_t column_panel = run.column / kColumns;
      T* sum = sums + (column_panel * group_.num_out + panels_.first_row(panel)) * kColumns;
      ends.from = begin > 0 ? sum : nullptr;
      ends.from_stride = kColumns;
      ends.row_start =
          bias_ != nullptr ? bias_ + group_.first_out + panels_.first_row(panel) : nullptr;
      ends.to = sum;
      ends.to_stride = kColumns;
      PanelPart<Entry> part{weights, panels_.rows_of(panel), rows + column_panel * panel_stride};
      if constexpr (kTerms == 1) {
        if (end == depth_ && writes_in_place(run)) {
          ends.to = pixel(run, panels_.first_row(panel));
          ends.to_stride = out_.channel_stride;
        }
        if (reads_in_place(run)) {
          part.b = pixel_read(run, begin);
          part.b_stride = in_.channel_stride;
          part.fetched = panel == first_panel_ ? kColumns : 0;  // later ones find it in the cache
        }
      }
      multiply_panels<Entry>(static_cast<int>(panels_.rows_of(panel)), end - begin, part, ends);
    }
  }

  void write(const WindowRun& run, const T* sums, int64_t begin, int64_t end) const {
    const int64_t step = lattice_.step[2] * out_.stride[2];
    for (int64_t channel = begin; channel < end; ++channel) {
      const T* from = sums + (run.column / kColumns * group_.num_out + channel) * kColumns +
                      run.column % kColumns;
      Stored* to = pixel(run, channel);
      spread_run(to, from, run.length, step);
    }
  }

  const StridedImage<const Stored> in_;
  const Windows& windows_;
  const T* bias_;
  const StridedImage<Stored> out_;
  const OutputLattice lattice_;
  const GroupChannels group_;
  const int64_t num_rows_;
  const int64_t depth_;  // entries
  const WindowWeight<T> weight_;
  const int64_t rows_at_once_;
  const RowPanels panels_;
  const std::span<Entry> packed_;
  const bool reads_pixels_, writes_all_pixels_;
  int64_t first_panel_ = 0, end_panel_ = 0;  // that are packed
};

}  // namespace tessera
