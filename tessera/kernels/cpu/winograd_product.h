#pragma once
// A 3x3 (or n x 3x3) convolution of stride 1 by Winograd's tiles:
//
//   windows of 6x6 ──► 36 points ──► 36 products over channels ──► 36 points ──► tiles of 4x4
//
// A block is some tiles at once, wherever they lie in the batch. Along the depth of a volume the
// products of neighbouring slices are added; a block walks through the depth, so that each slice is
// transformed once.
//
// Memory besides the images: the transformed kernels, four times the weight; and for each thread
// the points of a block.

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
class WinogradProduct {
 public:
  WinogradProduct(const StridedImage<const T>& in, const SquareTaps& taps,
                  const WindowWeight<T>& weight, const T* bias, const StridedImage<T>& out,
                  const GroupChannels& group, std::span<T> packed)
      : in_(in),
        taps_(taps),
        bias_(bias),
        out_(out),
        group_(group),
        weight_(weight),
        panels_(group.num_out),
        tiles_{1, tiles_along(1), tiles_along(2)},
        packed_(packed) {}

  void run() {
    const int64_t per_row = kPoints * taps_.slices * group_.num_in;
    for_panels_that_fit(panels_, panels_.within(packed_.size(), per_row),
                        [&](int64_t first, int64_t end) { run_panels(first, end); });
  }

 private:
  void run_panels(int64_t first, int64_t end) {
    first_panel_ = first;
    end_panel_ = end;
    pack_weight();
    const int64_t num_panels = end_panel_ - first_panel_;
    const int64_t total = out_.batch * tiles_[1] * tiles_[2];
    const int64_t columns = columns_at_once(total);
    const int64_t blocks = (total + columns - 1) / columns;
    // Few blocks are cut by depth, too, and by channels, so that every thread has one.
    const int64_t wanted = (at::get_num_threads() + blocks - 1) / blocks;
    const int64_t depths = std::min(wanted, out_.size[0]);
    const int64_t shares = std::clamp<int64_t>(wanted / depths, 1, num_panels);
    at::parallel_for(0, blocks * depths * shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task / shares / depths * columns;
        const int64_t depth = task / shares % depths, share = task % shares;
        Block block(*this, first, std::min(columns, total - first));
        block.run(depth * out_.size[0] / depths, (depth + 1) * out_.size[0] / depths,
                  first_panel_ + share * num_panels / shares,
                  first_panel_ + (share + 1) * num_panels / shares);
      }
    });
  }

  static constexpr int kPoints = winograd::kPoints;
  static constexpr int64_t kColumns = kPanelColumns<T>;
  static constexpr int64_t kSumBytes = 192 << 10;

  int64_t tiles_along(int axis) const {
    return (out_.size[axis] + winograd::kOut - 1) / winograd::kOut;
  }

  /// Several panels, so that rows of the image are read in long runs and kernels serve many tiles,
  /// as far as their points have room in the caches.
  int64_t columns_at_once(int64_t total) const {
    constexpr int64_t kPointBytes = 8 << 20, kMostPanels = 4;
    const int64_t bytes =
        kPoints * group_.num_in * taps_.slices * kColumns * static_cast<int64_t>(sizeof(T));
    const int64_t most = taps_.slices == 1 ? kMostPanels : kMostPanels / 2;
    const int64_t needed = (total + kColumns - 1) / kColumns;
    return std::min(std::clamp<int64_t>(kPointBytes / bytes, 1, most), needed) * kColumns;
  }

  /// The transformed kernels of a panel of rows: [channel][row].
  T* packed_panel(int64_t point, int64_t slice, int64_t panel) const {
    const int64_t before = panels_.first_row(first_panel_);
    const int64_t rows = panels_.first_row(end_panel_) - before;
    return packed_.data() +
           ((point * taps_.slices + slice) * rows + panels_.first_row(panel) - before) *
               group_.num_in;
  }

  void pack_weight() const {
    at::parallel_for(first_panel_ * taps_.slices, end_panel_ * taps_.slices, 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t task = begin; task < end; ++task)
                         pack_panel(task / taps_.slices, task % taps_.slices);
                     });
  }

  void pack_panel(int64_t panel, int64_t slice) const {
    // Rows are lanes: 14 or fewer of two registers.
    constexpr int kLanesUsed = (kPanelRows + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    const int64_t rows = panels_.rows_of(panel);
    T kernels[9][kLanesUsed] = {};
    T points[kPoints][kLanesUsed];
    for (int64_t channel = 0; channel < group_.num_in; ++channel) {
      const T* from = weight_.data + panels_.first_row(panel) * weight_.out_stride +
                      channel * weight_.in_stride;
      for (int tap = 0; tap < 9; ++tap) {
        const T* entry = from + taps_.entry[static_cast<size_t>(slice * 9 + tap)];
        for (int64_t row = 0; row < rows; ++row)
          kernels[tap][row] = entry[row * weight_.out_stride];
      }
      for (int lane = 0; lane < kLanesUsed; lane += kLanes<T>)
        winograd::transform_square<3, 6, Vector<T>>(
            [&](int tap) { return load(&kernels[tap][lane]); },
            [](const Vector<T>* g, Vector<T>* to) { winograd::transform_kernel<T>(g, to); },
            [&](int point, Vector<T> value) { store(&points[point][lane], value); });
      for (int point = 0; point < kPoints; ++point)
        std::copy_n(points[point], rows, packed_panel(point, slice, panel) + channel * rows);
    }
  }

  /// Some tiles of the plane, through the depth.
  class Block {
   public:
    Block(const WinogradProduct& product, int64_t begin, int64_t count)
        : product_(product),
          runs_(runs_of_windows(product.tiles_, begin, count, kColumns)),
          columns_((count + kColumns - 1) / kColumns * kColumns),
          rows_at_once_(rows_at_once()) {
      const GroupChannels& group = product.group_;
      slice_size_ = kPoints * group.num_in * columns_;
      points_ = thread_buffer<T>(product.taps_.slices * slice_size_ +
                                 kPoints * rows_at_once_ * columns_ + kPoints * columns_);
      sums_ = points_ + product.taps_.slices * slice_size_;
      windows_ = sums_ + kPoints * rows_at_once_ * columns_;
    }

    void run(int64_t depth_begin, int64_t depth_end, int64_t first_panel, int64_t end_panel) {
      const SquareTaps& taps = product_.taps_;
      for (int64_t depth = depth_begin; depth < depth_end; ++depth) {
        // The first output needs all slices, each further one a new one.
        for (int64_t slice = depth == depth_begin ? 0 : taps.slices - 1; slice < taps.slices;
             ++slice)
          if (is_inside(depth, slice)) transform_slice(taps.image_slice(depth, slice));
        for (int64_t panel = first_panel; panel < end_panel;) {
          int64_t end = panel + 1;
          while (end < end_panel && product_.panels_.first_row(end) +
                                            product_.panels_.rows_of(end) -
                                            product_.panels_.first_row(panel) <=
                                        rows_at_once_)
            ++end;
          multiply(depth, panel, end);
          write(depth, panel, end);
          panel = end;
        }
      }
    }

   private:
    int64_t rows_at_once() const {
      const int64_t most = kSumBytes / static_cast<int64_t>(sizeof(T)) / (kPoints * columns_);
      return std::clamp(most, product_.panels_.height(), product_.group_.num_out);
    }

    bool is_inside(int64_t depth, int64_t slice) const {
      return product_.taps_.is_inside(depth, slice, product_.in_.size[0]);
    }
    T* points_of(int64_t image_slice) const {
      return points_ + product_.taps_.place_of(image_slice) * slice_size_;
    }

    /// [point][panel of columns][channel][column]
    void transform_slice(int64_t image_slice) {
      const GroupChannels& group = product_.group_;
      const SquareTaps& taps = product_.taps_;
      Windows windows{product_.tiles_, {1, winograd::kOut, winograd::kOut}, {}};
      for (int h = 0; h < winograd::kIn; ++h)
        for (int w = 0; w < winograd::kIn; ++w)
          windows.taps.push_back({{image_slice, taps.first[1] + h, taps.first[2] + w}, 0});
      WindowRows<T> rows(product_.in_, windows, group.first_in);
      rows.set_columns(runs_, columns_, 0, columns_);
      T* to = points_of(image_slice);
      for (int64_t channel = 0; channel < group.num_in; ++channel) {
        if (channel + 1 < group.num_in) rows.prefetch(channel + 1);
        rows.pack(channel * kPoints, (channel + 1) * kPoints, windows_, columns_);
        for (int64_t column = 0; column < columns_; column += kLanes<T>) {
          T* channel_to =
              to + (column / kColumns * group.num_in + channel) * kColumns + column % kColumns;
          winograd::transform_square<6, 6, Vector<T>>(
              [&](int point) { return load(windows_ + point * columns_ + column); },
              [](const Vector<T>* d, Vector<T>* line) { winograd::transform_input(d, line); },
              [&](int point, Vector<T> value) {
                store(channel_to + point * group.num_in * columns_, value);
              });
        }
      }
    }

    /// Sums are [point][panel of columns][row][column].
    void multiply(int64_t depth, int64_t first_panel, int64_t end_panel) {
      const GroupChannels& group = product_.group_;
      const int64_t first_row = product_.panels_.first_row(first_panel);
      for (int point = 0; point < kPoints; ++point)
        for (int64_t panel = first_panel; panel < end_panel; ++panel)
          for (int64_t column = 0; column < columns_; column += kColumns) {
            const int64_t rows = product_.panels_.rows_of(panel);
            T* sum = sums_ + (point * columns_ + column) * rows_at_once_ +
                     (product_.panels_.first_row(panel) - first_row) * kColumns;
            PanelEnds<T> ends{nullptr, kColumns, nullptr, sum, kColumns};
            for (int64_t slice = 0; slice < product_.taps_.slices; ++slice) {
              if (!is_inside(depth, slice)) continue;
              const T* points = points_of(product_.taps_.image_slice(depth, slice)) +
                                (point * columns_ + column) * group.num_in;
              multiply_panels(static_cast<int>(rows), group.num_in,
                              product_.packed_panel(point, slice, panel), rows, points, ends);
              ends.from = sum;
            }
            if (ends.from == nullptr)  // no slice at all
              multiply_panels<T>(static_cast<int>(rows), 0, nullptr, 0, nullptr, ends);
          }
    }

    void write(int64_t depth, int64_t first_panel, int64_t end_panel) {
      const int64_t first_row = product_.panels_.first_row(first_panel);
      const int64_t end_row =
          product_.panels_.first_row(end_panel - 1) + product_.panels_.rows_of(end_panel - 1);
      alignas(64) T pixels[winograd::kOut][winograd::kOut * kColumns];
      size_t run = 0;
      for (int64_t column = 0; column < columns_; column += kColumns) {
        size_t end_run = run;
        while (end_run < runs_.size() && runs_[end_run].column < column + kColumns) ++end_run;
        for (int64_t row = first_row; row < end_row; ++row) {
          const T start =
              product_.bias_ != nullptr ? product_.bias_[product_.group_.first_out + row] : T(0);
          for (int64_t lane = 0; lane < kColumns; lane += kLanes<T>)
            transform_back(sums_ + column * rows_at_once_ + (row - first_row) * kColumns + lane,
                           start, &pixels[0][winograd::kOut * lane]);
          for (size_t i = run; i < end_run; ++i) write_run(runs_[i], depth, row, pixels);
        }
        run = end_run;
      }
    }

    void transform_back(const T* sums, T start, T* pixels) const {
      Vector<T> tile[winograd::kOut * winograd::kOut];
      const int64_t stride = rows_at_once_ * columns_;
      Vector<T> half[winograd::kOut][winograd::kIn];
      for (int w = 0; w < winograd::kIn; ++w) {
        Vector<T> from[winograd::kIn], to[winograd::kOut];
        for (int h = 0; h < winograd::kIn; ++h)
          from[h] = load(sums + (h * winograd::kIn + w) * stride);
        winograd::transform_output(from, to);
        for (int h = 0; h < winograd::kOut; ++h) half[h][w] = to[h];
      }
      for (int h = 0; h < winograd::kOut; ++h) {
        winograd::transform_output(half[h], tile + h * winograd::kOut);
        Vector<T>* line = tile + h * winograd::kOut;
        store_interleaved(pixels + h * winograd::kOut * kColumns, line[0] + start, line[1] + start,
                          line[2] + start, line[3] + start);
      }
    }

    void write_run(const WindowRun& run, int64_t depth, int64_t row,
                   const T (&pixels)[winograd::kOut][winograd::kOut * kColumns]) const {
      const StridedImage<T>& out = product_.out_;
      const int64_t h = run.at[1] * winograd::kOut, w = run.at[2] * winograd::kOut;
      const int64_t rows = std::min<int64_t>(winograd::kOut, out.size[1] - h);
      const int64_t length = std::min(run.length * winograd::kOut, out.size[2] - w);
      T* to = out.plane(run.sample, product_.group_.first_out + row) + depth * out.stride[0] +
              h * out.stride[1] + w * out.stride[2];
      for (int64_t i = 0; i < rows; ++i, to += out.stride[1]) {
        const T* from = pixels[i] + run.column % kColumns * winograd::kOut;
        if (out.stride[2] == 1)
          copy_run(to, from, length);
        else
          for (int64_t j = 0; j < length; ++j) to[j * out.stride[2]] = from[j];
      }
    }

    const WinogradProduct& product_;
    const std::vector<WindowRun> runs_;
    const int64_t columns_, rows_at_once_;
    int64_t slice_size_ = 0;
    T *points_ = nullptr, *sums_ = nullptr, *windows_ = nullptr;
  };

  const StridedImage<const T> in_;
  const SquareTaps& taps_;
  const T* bias_;
  const StridedImage<T> out_;
  const GroupChannels group_;
  const WindowWeight<T> weight_;
  const RowPanels panels_;
  const SpaceAxes tiles_;
  const std::span<T> packed_;
  int64_t first_panel_ = 0, end_panel_ = 0;  // that are packed
};

}  // namespace tessera
