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
#include "tessera/kernels/cpu/thread_buffer.h"
#include "tessera/kernels/cpu/window_product.h"
#include "tessera/kernels/cpu/winograd_product.h"
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
                        [&](int64_t first, int64_t end) {
                          first_panel_ = first;
                          end_panel_ = end;
                          run_panels();
                        });
  }

 private:
  void run_panels() const {
    const int64_t num_panels = end_panel_ - first_panel_;
    const int64_t parts = std::min<int64_t>(at::get_num_threads(), num_panels);
    at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = first_panel_ + part * num_panels / parts;
        const int64_t last = first_panel_ + (part + 1) * num_panels / parts;
        Part(*this, first, last).run();
        for (int64_t panel = first; panel < last; ++panel) write(panel);
      }
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
    const int64_t sums = group_.num_in * group_.num_out;
    const int64_t most = sums <= 64 * 64 ? 64 : sums <= 256 * 256 ? 96 : 128;
    return std::min(most, padded(out_.batch * tiles_[1] * tiles_[2], kLanes<T>));
  }

  /// Some panels of k.
  class Part {
   public:
    Part(const WinogradGradient& whole, int64_t first_panel, int64_t end_panel)
        : whole_(whole),
          first_panel_(first_panel),
          end_panel_(end_panel),
          tiles_(whole.tiles_at_once()),
          slice_size_(kPoints * tiles_ * whole.in_width_),
          out_size_(kPoints * tiles_ * kRowsWidth) {
      const int64_t slices = whole.taps_.slices * slice_size_;
      const int64_t outs = (end_panel - first_panel) * out_size_;
      points_ = thread_buffer<T>(slices + outs + kPoints * tiles_ * (kLanes<T> + 1));
      out_points_ = points_ + slices;
      turned_ = out_points_ + outs;
      windows_ = turned_ + kPoints * tiles_ * kLanes<T>;
    }

    void run() {
      const SquareTaps& taps = whole_.taps_;
      const int64_t total = whole_.out_.batch * whole_.tiles_[1] * whole_.tiles_[2];
      for (int64_t begin = 0; begin < total; begin += tiles_) {
        runs_ = runs_of_windows(whole_.tiles_, begin, std::min(tiles_, total - begin), tiles_);
        for (int64_t depth = 0; depth < whole_.out_.size[0]; ++depth) {
          for (int64_t slice = depth == 0 ? 0 : taps.slices - 1; slice < taps.slices; ++slice)
            if (is_inside(depth, slice)) transform_slice(depth + taps.first[0] + slice);
          transform_outs(depth);
          for (int64_t slice = 0; slice < taps.slices; ++slice)
            if (is_inside(depth, slice))
              multiply(slice, points_of(depth + taps.first[0] + slice));
            else if (!begun(slice))
              multiply_nothing(slice);
        }
      }
    }

   private:
    bool is_inside(int64_t depth, int64_t slice) const {
      const int64_t at = depth + whole_.taps_.first[0] + slice;
      return at >= 0 && at < whole_.in_.size[0];
    }
    T* points_of(int64_t image_slice) const {
      const int64_t slices = whole_.taps_.slices;
      return points_ + (image_slice % slices + slices) % slices * slice_size_;
    }
    bool begun(int64_t slice) const { return begun_ >> slice & 1; }

    /// [point][panel of channels][tile][channel]
    void transform_slice(int64_t image_slice) {
      const SpaceAxes first{image_slice, whole_.taps_.first[1], whole_.taps_.first[2]};
      const WindowRows<T> rows =
          windows_over(whole_.in_, winograd::kIn, first, &in_windows_, whole_.group_.first_in);
      for (int64_t channel = 0; channel < whole_.group_.num_in; channel += kLanes<T>)
        transform_channels<winograd::kIn>(
            rows, channel, std::min<int64_t>(kLanes<T>, whole_.group_.num_in - channel),
            [](const Vector<T>* d, Vector<T>* to) { winograd::transform_input(d, to); },
            points_of(image_slice) + channel / kColumns * tiles_ * kColumns + channel % kColumns,
            tiles_ * whole_.in_width_, kColumns);
    }

    /// [panel of k][point][tile][k]
    void transform_outs(int64_t depth) {
      const WindowRows<T> rows = windows_over(whole_.out_, winograd::kOut, {depth, 0, 0},
                                              &out_windows_, whole_.group_.first_out);
      for (int64_t panel = first_panel_; panel < end_panel_; ++panel)
        for (int64_t row = 0; row < whole_.panels_.rows_of(panel); row += kLanes<T>)
          transform_channels<winograd::kOut>(
              rows, whole_.panels_.first_row(panel) + row,
              std::min<int64_t>(kLanes<T>, whole_.panels_.rows_of(panel) - row),
              [](const Vector<T>* y, Vector<T>* to) { winograd::transform_output_gradient(y, to); },
              out_points_ + (panel - first_panel_) * out_size_ + row, tiles_ * kRowsWidth,
              kRowsWidth);
    }

    WindowRows<T> windows_over(const StridedImage<const T>& image, int64_t size,
                               const SpaceAxes& first, Windows* windows, int64_t first_channel) {
      *windows = {whole_.tiles_, {1, winograd::kOut, winograd::kOut}, {}};
      for (int64_t h = 0; h < size; ++h)
        for (int64_t w = 0; w < size; ++w)
          windows->taps.push_back({{first[0], first[1] + h, first[2] + w}, 0});
      WindowRows<T> rows(image, *windows, first_channel);
      rows.set_columns(runs_, tiles_, 0, tiles_);
      return rows;
    }

    /// A register of channels; to[point * point_stride + tile * tile_stride].
    template <int kSize, class Line>
    void transform_channels(const WindowRows<T>& rows, int64_t first, int64_t count,
                            const Line& line, T* to, int64_t point_stride, int64_t tile_stride) {
      for (int64_t channel = 0; channel < count; ++channel) {
        rows.pack((first + channel) * kSize * kSize, (first + channel + 1) * kSize * kSize,
                  windows_, tiles_);
        for (int64_t tile = 0; tile < tiles_; tile += kLanes<T>)
          winograd::transform_square<kSize, winograd::kIn, Vector<T>>(
              [&](int entry) { return load(windows_ + entry * tiles_ + tile); }, line,
              [&](int point, Vector<T> value) {
                store(turned_ + (point * kLanes<T> + channel) * tiles_ + tile, value);
              });
      }
      for (int point = 0; point < kPoints; ++point)
        for (int64_t tile = 0; tile < tiles_; tile += kLanes<T>) {
          Vector<T> square[kLanes<T>];
          for (int lane = 0; lane < kLanes<T>; ++lane)
            square[lane] = load(turned_ + (point * kLanes<T> + lane) * tiles_ + tile);
          transpose<T>(square);
          for (int lane = 0; lane < kLanes<T>; ++lane)
            store(to + point * point_stride + (tile + lane) * tile_stride, square[lane]);
        }
    }

    void multiply(int64_t slice, const T* points) {
      for (int point = 0; point < kPoints; ++point)
        for (int64_t panel = first_panel_; panel < end_panel_; ++panel)
          for (int64_t column = 0; column < whole_.in_width_; column += kColumns)
            multiply_panels(
                static_cast<int>(whole_.panels_.rows_of(panel)), tiles_,
                out_points_ + (panel - first_panel_) * out_size_ + point * tiles_ * kRowsWidth,
                kRowsWidth, points + (point * whole_.in_width_ + column) * tiles_,
                ends(point, slice, panel, column));
      begun_ |= uint64_t{1} << slice;
    }

    /// A slice that lies outside the image for all tiles still has its zeros.
    void multiply_nothing(int64_t slice) {
      for (int point = 0; point < kPoints; ++point)
        for (int64_t panel = first_panel_; panel < end_panel_; ++panel)
          for (int64_t column = 0; column < whole_.in_width_; column += kColumns)
            multiply_panels<T>(static_cast<int>(whole_.panels_.rows_of(panel)), 0, nullptr, 0,
                               nullptr, ends(point, slice, panel, column));
      begun_ |= uint64_t{1} << slice;
    }

    PanelEnds<T> ends(int point, int64_t slice, int64_t panel, int64_t column) const {
      T* sums = whole_.sums_of(point, slice, panel, column);
      return {begun(slice) ? sums : nullptr, kColumns, nullptr, sums, kColumns};
    }

    const WinogradGradient& whole_;
    const int64_t first_panel_, end_panel_, tiles_;
    const int64_t slice_size_, out_size_;
    std::vector<WindowRun> runs_;
    Windows in_windows_, out_windows_;
    uint64_t begun_ = 0;  // slices with sums
    T *points_ = nullptr, *out_points_ = nullptr, *turned_ = nullptr, *windows_ = nullptr;
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
