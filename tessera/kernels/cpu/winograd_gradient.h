#pragma once
// The gradient of the kernels of a 3x3 (or n x 3x3) convolution, by Winograd's tiles:
//
//   6x6 inputs  ──► points [tile][channel] ─┐
//                                           ├─► Σ over tiles: points [k][channel] ──► 3x3 kernels
//   4x4 outputs ──► points [tile][k]      ──┘
//
// Products run over tiles, so points are turned: a register holds channels of one tile. Threads
// have some of the k each, and walk over all tiles.

#include <ATen/Parallel.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tessera/kernels/cpu/panels.h"
#include "tessera/kernels/cpu/square_taps.h"
#include "tessera/kernels/cpu/thread_buffer.h"
#include "tessera/kernels/cpu/window_product.h"
#include "tessera/kernels/cpu/winograd_transform.h"

namespace tessera {

template <class T>
class WinogradGradient {
 public:
  /// `gradient` is [num_out, num_in, 9 * slices] of the group; `sums` holds as many k as it can.
  WinogradGradient(const StridedImage<const T>& in, const SquareTaps& taps,
                   const StridedImage<const T>& out, const GroupChannels& group, T* gradient,
                   std::span<T> sums)
      : in_(in),
        taps_(taps),
        out_(out),
        group_(group),
        in_width_(padded(group.num_in, kColumns)),
        panels_(group.num_out),
        tiles_{1, (out.size[1] + winograd::kOut - 1) / winograd::kOut,
               (out.size[2] + winograd::kOut - 1) / winograd::kOut},
        gradient_(gradient),
        sums_(sums) {}

  void run() {
    const int64_t per_row = kPoints * taps_.slices * in_width_;
    for_panels_that_fit(panels_, panels_.within(sums_.size(), per_row),
                        [&](int64_t first, int64_t end) { run_panels(first, end); });
  }

 private:
  void run_panels(int64_t first, int64_t end) {
    first_panel_ = first;
    end_panel_ = end;
    Block(*this, first_panel_, end_panel_).run();
    at::parallel_for(first_panel_, end_panel_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) write(panel);
    });
  }

  static constexpr int kPoints = winograd::kPoints;
  static constexpr int64_t kColumns = kPanelColumns<T>;
  static constexpr int64_t kRowsWidth = (kPanelRows + kLanes<T> - 1) / kLanes<T> * kLanes<T>;

  static int64_t padded(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

  /// Of one point and slice: [panel of k][panel of channels][k][channel].
  T* sums_of(int64_t point, int64_t slice, int64_t panel, int64_t column) const {
    const int64_t before = panels_.first_row(first_panel_);
    const int64_t rows = panels_.first_row(end_panel_) - before;
    return sums_.data() +
           ((point * taps_.slices + slice) * rows + panels_.first_row(panel) - before) * in_width_ +
           column * panels_.rows_of(panel);
  }

  /// Many sums are read from far away, and by many tiles in turn.
  int64_t tiles_at_once() const {
    constexpr int64_t kPointBytes = 4 << 20, kLeast = 128, kMost = 1024;
    const int64_t numbers = in_width_ * taps_.slices + panels_.count() * kRowsWidth;
    const int64_t room = kPointBytes / static_cast<int64_t>(sizeof(T)) / (kPoints * numbers);
    const int64_t total = out_.batch * tiles_[1] * tiles_[2];
    return std::min(std::clamp(room, kLeast, kMost) / kLanes<T> * kLanes<T>,
                    padded(total, kLanes<T>));
  }

  /// Some panels of k, over all tiles.
  class Block {
   public:
    Block(const WinogradGradient& whole, int64_t first_panel, int64_t end_panel)
        : whole_(whole),
          first_panel_(first_panel),
          end_panel_(end_panel),
          tiles_(whole.tiles_at_once()),
          slice_size_(kPoints * tiles_ * whole.in_width_),
          out_size_(kPoints * tiles_ * kRowsWidth) {
      const int64_t slices = whole.taps_.slices * slice_size_;
      const int64_t outs = (end_panel - first_panel) * out_size_;
      points_ = thread_buffer<T, BufferOf::kAll>(slices + outs);
      out_points_ = points_ + slices;
    }

    void run() {
      const int64_t total = whole_.out_.batch * whole_.tiles_[1] * whole_.tiles_[2];
      for (int64_t begin = 0; begin < total; begin += tiles_) {
        count_ = std::min(tiles_, total - begin);
        for (int64_t depth = 0; depth < whole_.out_.size[0]; ++depth) {
          transform(begin, depth);
          multiply(depth);
        }
      }
    }

   private:
    bool is_inside(int64_t depth, int64_t slice) const {
      return whole_.taps_.is_inside(depth, slice, whole_.in_.size[0]);
    }
    T* points_of(int64_t image_slice) const {
      return points_ + whole_.taps_.place_of(image_slice) * slice_size_;
    }

    int64_t num_registers() const { return (count_ + kLanes<T> - 1) / kLanes<T>; }

    /// Each thread has registers of tiles of its own.
    void transform(int64_t begin, int64_t depth) {
      const int64_t parts = std::min<int64_t>(at::get_num_threads(), num_registers());
      at::parallel_for(0, parts, 1, [&](int64_t first_part, int64_t end_part) {
        for (int64_t part = first_part; part < end_part; ++part) {
          const int64_t first = part * num_registers() / parts * kLanes<T>;
          const int64_t end = (part + 1) * num_registers() / parts * kLanes<T>;
          Tiles tiles{first, end - first,
                      runs_of_windows(whole_.tiles_, begin + first, std::min(end, count_) - first,
                                      end - first)};
          const SquareTaps& taps = whole_.taps_;
          // The first output needs all slices, each further one a new one.
          for (int64_t slice = depth == 0 ? 0 : taps.slices - 1; slice < taps.slices; ++slice)
            if (is_inside(depth, slice)) transform_slice(tiles, taps.image_slice(depth, slice));
          transform_outs(tiles, depth);
        }
      });
    }

    /// Of a block, and where windows over them stand.
    struct Tiles {
      int64_t first = 0, count = 0;
      std::vector<WindowRun> runs;
    };

    /// [point][panel of channels][tile][channel]
    void transform_slice(const Tiles& tiles, int64_t image_slice) const {
      const GroupChannels& group = whole_.group_;
      const Windows windows =
          windows_over(winograd::kIn, {image_slice, whole_.taps_.first[1], whole_.taps_.first[2]});
      WindowRows<T> rows(whole_.in_, windows, group.first_in);
      rows.set_columns(tiles.runs, tiles.count, 0, tiles.count);
      T* to = points_of(image_slice) + tiles.first * kColumns;
      for (int64_t channel = 0; channel < group.num_in; channel += kLanes<T>)
        transform_channels<winograd::kIn>(
            rows, tiles.count, channel, std::min<int64_t>(kLanes<T>, group.num_in - channel),
            [](const Vector<T>* d, Vector<T>* line) { winograd::transform_input(d, line); },
            to + channel / kColumns * tiles_ * kColumns + channel % kColumns,
            tiles_ * whole_.in_width_, kColumns);
    }

    /// [panel of k][point][tile][k]
    void transform_outs(const Tiles& tiles, int64_t depth) const {
      const Windows windows = windows_over(winograd::kOut, {depth, 0, 0});
      WindowRows<T> rows(whole_.out_, windows, whole_.group_.first_out);
      rows.set_columns(tiles.runs, tiles.count, 0, tiles.count);
      for (int64_t panel = first_panel_; panel < end_panel_; ++panel)
        for (int64_t row = 0; row < whole_.panels_.rows_of(panel); row += kLanes<T>)
          transform_channels<winograd::kOut>(
              rows, tiles.count, whole_.panels_.first_row(panel) + row,
              std::min<int64_t>(kLanes<T>, whole_.panels_.rows_of(panel) - row),
              [](const Vector<T>* y, Vector<T>* line) {
                winograd::transform_output_gradient(y, line);
              },
              out_points_ + (panel - first_panel_) * out_size_ + tiles.first * kRowsWidth + row,
              tiles_ * kRowsWidth, kRowsWidth);
    }

    Windows windows_over(int64_t size, const SpaceAxes& first) const {
      Windows windows{whole_.tiles_, {1, winograd::kOut, winograd::kOut}, {}};
      for (int64_t h = 0; h < size; ++h)
        for (int64_t w = 0; w < size; ++w)
          windows.taps.push_back({{first[0], first[1] + h, first[2] + w}, 0});
      return windows;
    }

    /// A register of channels of some tiles; to[point * point_stride + tile * tile_stride].
    template <int kSize, class Line>
    void transform_channels(const WindowRows<T>& rows, int64_t tiles, int64_t first, int64_t count,
                            const Line& line, T* to, int64_t point_stride,
                            int64_t tile_stride) const {
      T* turned = thread_buffer<T>(kPoints * tiles * (kLanes<T> + 1));
      T* windows = turned + kPoints * tiles * kLanes<T>;
      for (int64_t channel = 0; channel < count; ++channel) {
        if (channel + 1 < count) rows.prefetch(first + channel + 1);
        rows.pack((first + channel) * kSize * kSize, (first + channel + 1) * kSize * kSize, windows,
                  tiles);
        for (int64_t tile = 0; tile < tiles; tile += kLanes<T>)
          winograd::transform_square<kSize, winograd::kIn, Vector<T>>(
              [&](int entry) { return load(windows + entry * tiles + tile); }, line,
              [&](int point, Vector<T> value) {
                store(turned + (point * kLanes<T> + channel) * tiles + tile, value);
              });
      }
      for (int point = 0; point < kPoints; ++point)
        for (int64_t tile = 0; tile < tiles; tile += kLanes<T>) {
          Vector<T> square[kLanes<T>];
          for (int lane = 0; lane < kLanes<T>; ++lane)
            square[lane] = load(turned + (point * kLanes<T> + lane) * tiles + tile);
          transpose<T>(square);
          for (int lane = 0; lane < kLanes<T>; ++lane)
            store(to + point * point_stride + (tile + lane) * tile_stride, square[lane]);
        }
    }

    /// Slices that lie outside the image add nothing, but their sums begin as zeros.
    void multiply(int64_t depth) {
      const SquareTaps& taps = whole_.taps_;
      const int64_t tiles = num_registers() * kLanes<T>;
      at::parallel_for(0, kPoints, 1, [&](int64_t begin, int64_t end) {
        for (int64_t point = begin; point < end; ++point)
          for (int64_t slice = 0; slice < taps.slices; ++slice) {
            const bool inside = is_inside(depth, slice);
            if (!inside && begun_) continue;
            for (int64_t panel = first_panel_; panel < end_panel_; ++panel)
              for (int64_t column = 0; column < whole_.in_width_; column += kColumns) {
                const T* points = points_of(taps.image_slice(depth, slice)) +
                                  (point * whole_.in_width_ + column) * tiles_;
                multiply_panels(
                    static_cast<int>(whole_.panels_.rows_of(panel)), inside ? tiles : 0,
                    out_points_ + (panel - first_panel_) * out_size_ + point * tiles_ * kRowsWidth,
                    kRowsWidth, points, ends(point, slice, panel, column));
              }
          }
      });
      begun_ = true;
    }

    PanelEnds<T> ends(int64_t point, int64_t slice, int64_t panel, int64_t column) const {
      T* sums = whole_.sums_of(point, slice, panel, column);
      return {begun_ ? sums : nullptr, kColumns, nullptr, sums, kColumns};
    }

    const WinogradGradient& whole_;
    const int64_t first_panel_, end_panel_, tiles_;
    const int64_t slice_size_, out_size_;
    int64_t count_ = 0;   // tiles of the block that is under way
    bool begun_ = false;  // there are sums
    T *points_ = nullptr, *out_points_ = nullptr;
  };

  /// From sums of points to gradients of kernels, a register of channels at a time.
  void write(int64_t panel) const {
    const int64_t taps = std::ssize(taps_.entry);
    for (int64_t slice = 0; slice < taps_.slices; ++slice)
      for (int64_t row = 0; row < panels_.rows_of(panel); ++row)
        for (int64_t channel = 0; channel < group_.num_in; channel += kLanes<T>) {
          const int64_t panel_channel = channel / kColumns * kColumns;
          const int64_t offset = row * kColumns + channel - panel_channel;
          T* to = gradient_ + ((panels_.first_row(panel) + row) * group_.num_in + channel) * taps;
          const int64_t count = std::min<int64_t>(kLanes<T>, group_.num_in - channel);
          winograd::transform_square<winograd::kIn, winograd::kKernel, Vector<T>>(
              [&](int point) { return load(sums_of(point, slice, panel, panel_channel) + offset); },
              [](const Vector<T>* u, Vector<T>* g) {
                winograd::transform_kernel_gradient<T>(u, g);
              },
              [&](int tap, Vector<T> value) {
                T* entry = to + taps_.entry[static_cast<size_t>(slice * 9 + tap)];
                for (int64_t lane = 0; lane < count; ++lane) entry[lane * taps] += value[lane];
              });
        }
  }

  const StridedImage<const T> in_;
  const SquareTaps& taps_;
  const StridedImage<const T> out_;
  const GroupChannels group_;
  const int64_t in_width_;
  const RowPanels panels_;
  const SpaceAxes tiles_;
  T* gradient_;
  const std::span<T> sums_;
  int64_t first_panel_ = 0, end_panel_ = 0;  // that have sums now
};

}  // namespace tessera
