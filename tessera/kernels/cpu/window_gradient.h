#pragma once
// gradient[k, row] += Σ over all windows j of out[k, j] * windows[row, j], where a row is a channel
// and a tap. Blocks of windows are packed and turned, so that a register holds rows of one window:
//
//   windows  [window][row]  ─┐
//                            ├─► Σ over windows, a few k by two registers of rows at a time
//   out      [window][k]    ─┘
//
// Of images of type bf16, two neighbouring windows are one entry: turned as 32 bits they are pairs.
//
// A task has some of the rows and of k, and walks over all windows; so no thread has sums of its
// own, and bits do not depend on how many threads there are.

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "tessera/kernels/cpu/channel_pixels.h"
#include "tessera/kernels/cpu/panels.h"
#include "tessera/kernels/cpu/strided_image.h"
#include "tessera/kernels/cpu/thread_buffer.h"
#include "tessera/kernels/cpu/window_product.h"
#include "tessera/kernels/cpu/window_rows.h"

namespace tessera {

template <class Stored>
class WindowGradient {
  using T = Number<Stored>;
  using Entry = typename Packing<Stored>::Entry;
  static constexpr int64_t kTerms = Packing<Stored>::kTerms;

 public:
  /// `gradient` is [num_out, num_in, taps] of the group.
  WindowGradient(const StridedImage<const Stored>& in, const Windows& windows,
                 const StridedImage<const Stored>& out, const GroupChannels& group, T* gradient)
      : in_(in),
        windows_(windows),
        out_(out),
        group_(group),
        num_rows_(group.num_in * std::ssize(windows.taps)),
        gradient_(gradient) {}

  void run() const {
    const int64_t row_panels = (num_rows_ + kWidth - 1) / kWidth;
    const int64_t row_parts = (row_panels + kRowPanels - 1) / kRowPanels;
    // At least two for each thread, as far as there are panels of k.
    const int64_t wanted = (2 * at::get_num_threads() + row_parts - 1) / row_parts;
    const RowPanels panels(group_.num_out);
    const int64_t k_parts = std::clamp((panels.count() + kOutPanels - 1) / kOutPanels,
                                       std::min(wanted, panels.count()), panels.count());
    at::parallel_for(0, row_parts * k_parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t r = task % row_parts, k = task / row_parts;
        Task(*this,
             {r * row_panels / row_parts * kWidth,
              std::min((r + 1) * row_panels / row_parts * kWidth, num_rows_)},
             {panels.first_row(k * panels.count() / k_parts),
              panels.first_row((k + 1) * panels.count() / k_parts)})
            .run();
      }
    });
  }

 private:
  static constexpr int64_t kWidth = kPanelColumns<T>;
  static constexpr int64_t kOutWidth = (kPanelRows + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  static constexpr int64_t kEntries = 16 * kVectorBytes / static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kColumns = kTerms * kEntries;
  static constexpr int64_t kRowPanels = 6, kOutPanels = 18;  // of a task: its sums stay near

  /// As windows are copied: numbers, or the bits of half an entry.
  using Packed = std::conditional_t<kTerms == 2, uint16_t, Stored>;
  static int64_t entries_of(int64_t columns) { return (columns + kTerms - 1) / kTerms; }

  struct Part {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  class Task {
   public:
    Task(const WindowGradient& whole, const Part& rows, const Part& outs)
        : whole_(whole),
          rows_(rows),
          outs_(outs),
          panels_(outs.size()),
          width_((rows.size() + kWidth - 1) / kWidth * kWidth),
          windows_(seen_as<const Packed>(whole.in_), whole.windows_, whole.group_.first_in),
          pixels_(seen_as<const Packed>(whole.out_), kPixels, whole.group_.first_out) {
      // A register of windows more than there are: turned squares are whole.
      panel_size_ = (kEntries + kLanes<T>)*kWidth + 3 * kLanes<T>;
      const int64_t turned = width_ / kWidth * panel_size_;
      const int64_t outs_size = (kEntries + kLanes<T>)*kOutWidth;
      T* memory = thread_buffer<T>(turned + outs_size + kWidth * kStride + width_ * outs.size());
      columns_ = reinterpret_cast<Entry*>(memory);
      out_columns_ = columns_ + turned;
      packed_ = reinterpret_cast<Packed*>(out_columns_ + outs_size);
      sums_ = memory + turned + outs_size + kWidth * kStride;
    }

    void run() {
      std::fill_n(sums_, width_ * outs_.size(), T(0));
      const int64_t total = whole_.out_.batch * whole_.out_.num_pixels();
      for (int64_t begin = 0; begin < total; begin += kColumns)
        add_columns(begin, std::min(kColumns, total - begin));
      write();
    }

   private:
    static constexpr int64_t kStride = kColumns + kLanes<Packed>;
    static inline const Windows kPixels{{}, {1, 1, 1}, {{}}};

    void add_columns(int64_t begin, int64_t count) {
      const std::vector<WindowRun> runs = runs_of_windows(whole_.out_.size, begin, count, kColumns);
      const int64_t entries = entries_of(count);
      turn_windows(runs, entries);
      if (kTerms > 1) pixels_.set_columns(runs, kColumns, 0, entries * kTerms);
      for (int64_t panel = 0; panel < panels_.count(); ++panel) {
        const int64_t rows = panels_.rows_of(panel), first = panels_.first_row(panel);
        for (int64_t k = 0; k < rows; k += kLanes<T>)
          turn_outs(outs_.begin + first + k, std::min<int64_t>(kLanes<T>, rows - k), runs, entries,
                    out_columns_ + k);
        for (int64_t row = 0; row < width_; row += kWidth) {
          T* sums = sums_ + row * outs_.size() + first * kWidth;
          multiply_panels<Entry>(static_cast<int>(rows), entries,
                                 {out_columns_, kOutWidth, columns_ + row / kWidth * panel_size_},
                                 {nullptr, 0, nullptr, sums, kWidth, true});
        }
      }
    }

    /// [panel of rows][window][row]
    void turn_windows(const std::vector<WindowRun>& runs, int64_t entries) {
      const Windows& windows = whole_.windows_;
      const bool is_image = kTerms == 1 && windows.taps.size() == 1 &&
                            windows.step == SpaceAxes{1, 1, 1} && has_contiguous_rows(whole_.in_);
      if (!is_image) windows_.set_columns(runs, kColumns, 0, entries * kTerms);
      for (int64_t row = 0; row < width_; row += kWidth) {
        Entry* to = columns_ + row / kWidth * panel_size_;
        const int64_t rows = std::min(kWidth, rows_.size() - row);
        if (!is_image) windows_.pack(rows_.begin + row, rows_.begin + row + rows, packed_, kStride);
        for (int64_t lane = 0; lane < kWidth; lane += kLanes<T>) {
          const int64_t lanes = std::clamp<int64_t>(rows - lane, 0, kLanes<T>);
          if constexpr (kTerms == 1)
            if (is_image) {
              turn_image(whole_.in_, windows.taps[0].offset,
                         whole_.group_.first_in + rows_.begin + row + lane, lanes, runs, to + lane,
                         kWidth);
              continue;
            }
          turn_packed(lane, lanes, entries, to + lane, kWidth);
        }
      }
    }

    /// [window][k] of some k.
    void turn_outs(int64_t first, int64_t count, const std::vector<WindowRun>& runs,
                   int64_t entries, Entry* to) const {
      if constexpr (kTerms == 1) {
        turn_image(whole_.out_, {}, whole_.group_.first_out + first, count, runs, to, kOutWidth);
      } else {
        pixels_.pack(first, first + count, packed_, kStride);
        turn_packed(0, count, entries, to, kOutWidth);
      }
    }

    /// Rows [first, first + count) of those that are packed.
    void turn_packed(int64_t first, int64_t count, int64_t entries, Entry* to,
                     int64_t to_stride) const {
      constexpr int64_t kEntryStride = kStride / kTerms;
      const auto* rows = reinterpret_cast<const Entry*>(packed_) + first * kEntryStride;
      turn_pixels<Entry>({rows, kEntryStride, count, 0, entries}, entries, to, to_stride);
    }

    /// Pixels of an image need not be packed before, where they lie one after the other.
    void turn_image(const StridedImage<const T>& image, const SpaceAxes& offset, int64_t channel,
                    int64_t channels, const std::vector<WindowRun>& runs, T* to,
                    int64_t to_stride) const {
      for (const WindowRun& run : runs) {
        const int64_t d = run.at[0] + offset[0], h = run.at[1] + offset[1],
                      w = run.at[2] + offset[2];
        const bool inside = d >= 0 && d < image.size[0] && h >= 0 && h < image.size[1];
        const T* row = image.plane(run.sample, channel) + d * image.stride[0] +
                       h * image.stride[1] + w * image.stride[2];
        ChannelRow<T> pixels{row, image.channel_stride, inside ? channels : 0, -w,
                             image.size[2] - w};
        if (!has_contiguous_rows(image))
          pixels = packed_pixels(pixels, run.length, image.stride[2]);
        turn_pixels<T>(pixels, run.length, to + run.column * to_stride, to_stride);
      }
    }

    /// Of an image that is read without taps.
    ChannelRow<T> packed_pixels(const ChannelRow<T>& pixels, int64_t count, int64_t step) const {
      for (int64_t channel = 0; channel < pixels.channels; ++channel)
        copy_run(packed_ + channel * kStride, pixels.data + channel * pixels.channel_stride, count,
                 step);
      return {packed_, kStride, pixels.channels, 0, count};
    }

    void write() const {
      for (int64_t row = 0; row < rows_.size(); row += kWidth)
        for (int64_t k = 0; k < outs_.size(); ++k) {
          const T* from = sums_ + row * outs_.size() + k * kWidth;
          T* to = whole_.gradient_ + (outs_.begin + k) * whole_.num_rows_ + rows_.begin + row;
          const int64_t count = std::min(kWidth, rows_.size() - row);
          for (int64_t i = 0; i < count; ++i) to[i] += from[i];
        }
    }

    const WindowGradient& whole_;
    const Part rows_, outs_;
    const RowPanels panels_;
    const int64_t width_;
    WindowRows<Packed> windows_, pixels_;
    int64_t panel_size_ = 0;
    Entry *columns_ = nullptr, *out_columns_ = nullptr;
    Packed* packed_ = nullptr;
    T* sums_ = nullptr;
  };

  const StridedImage<const Stored> in_;
  const Windows& windows_;
  const StridedImage<const Stored> out_;
  const GroupChannels group_;
  const int64_t num_rows_;
  T* gradient_;
};

}  // namespace tessera
