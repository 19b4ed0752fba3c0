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

#include "tessera/kernels/cpu/channel_pixels.h"
#include "tessera/kernels/cpu/panels.h"
#include "tessera/kernels/cpu/square_taps.h"
#include "tessera/kernels/cpu/thread_buffer.h"
#include "tessera/kernels/cpu/window_product.h"
#include "tessera/kernels/cpu/winograd_transform.h"

namespace tessera {

/// How many tiles are transformed at once, and the numbers that are kept while a group runs: the
/// points of these tiles, of all channels on both sides, and sums for some k or all of them.
template <class T>
struct GradientRoom {
  GradientRoom(int64_t num_in, int64_t num_out, int64_t num_slices, int64_t total_tiles)
      : slices(num_slices),
        columns(num_in <= kLanes<T> ? kLanes<T> : kPanelColumns<T>),
        in_width(padded(num_in, columns)),
        out_width((padded(num_out, kLanes<T>) / kLanes<T> | 1) * kLanes<T>),
        panels(num_out),
        tiles(at_once(total_tiles)),
        point_size(winograd::apart<T>(tiles * in_width)),
        out_point_size(winograd::apart<T>(tiles * out_width)) {}

  static int64_t tiles_over(int64_t pixels) {
    return (pixels + winograd::kOut - 1) / winograd::kOut;
  }
  static constexpr int64_t padded(int64_t count, int64_t step) {
    return (count + step - 1) / step * step;
  }

  int64_t in_points() const { return slices * winograd::kPoints * point_size; }
  int64_t points() const { return in_points() + winograd::kPoints * out_point_size; }
  int64_t sums_of_row() const { return winograd::kPoints * slices * in_width; }

  int64_t slices;
  int64_t columns;  // of channels in a panel: one register, or two
  int64_t in_width;
  int64_t out_width;  // an odd number of registers: tiles lie apart in the sets of a cache
  RowPanels panels;
  int64_t tiles, point_size, out_point_size;

 private:
  /// Many sums are read from far away, and by many tiles in turn.
  int64_t at_once(int64_t total) const {
    constexpr int64_t kPointBytes = 4 << 20, kLeast = 128, kMost = 1024;
    const int64_t numbers = in_width * slices + out_width;
    const int64_t room =
        kPointBytes / static_cast<int64_t>(sizeof(T)) / (winograd::kPoints * numbers);
    return std::min(std::clamp(room, kLeast, kMost) / kLanes<T> * kLanes<T>,
                    padded(total, kLanes<T>));
  }
};

template <class Stored>
class WinogradGradient {
  using T = Number<Stored>;

 public:
  /// `gradient` is [num_out, num_in, 9 * slices] of the group; `scratch` has room for all points,
  /// and for the sums of as many k as it can hold.
  WinogradGradient(const StridedImage<const Stored>& in, const SquareTaps& taps,
                   const StridedImage<const Stored>& out, const GroupChannels& group, T* gradient,
                   std::span<T> scratch)
      : in_(in),
        taps_(taps),
        out_(out),
        group_(group),
        tiles_{1, GradientRoom<T>::tiles_over(out.size[1]),
               GradientRoom<T>::tiles_over(out.size[2])},
        room_(group.num_in, group.num_out, taps.slices, out.batch * tiles_[1] * tiles_[2]),
        gradient_(gradient),
        points_(scratch.data()),
        sums_(scratch.subspan(static_cast<size_t>(room_.points()))) {}

  void run() {
    for_panels_that_fit(panels_, panels_.within(sums_.size(), room_.sums_of_row()),
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
  static constexpr int64_t kRun = 16;  // tiles whose pixels are turned at once

  /// Of a panel of k: [slice][point][panel of channels][k][channel], so that the points of a kernel
  /// do not lie at multiples of what the sets of a cache repeat after.
  T* sums_of(int64_t point, int64_t slice, int64_t panel, int64_t column) const {
    const int64_t rows = panels_.rows_of(panel);
    const int64_t before = panels_.first_row(panel) - panels_.first_row(first_panel_);
    return sums_.data() +
           (before * kPoints * taps_.slices + (slice * kPoints + point) * rows) * in_width_ +
           column * rows;
  }

  /// Some panels of k, over all tiles.
  class Block {
   public:
    Block(const WinogradGradient& whole, int64_t first_panel, int64_t end_panel)
        : whole_(whole),
          first_panel_(first_panel),
          end_panel_(end_panel),
          tiles_(whole.room_.tiles),
          columns_(whole.room_.columns),
          point_size_(whole.room_.point_size),
          out_point_size_(whole.room_.out_point_size),
          slice_size_(kPoints * point_size_),
          out_width_(whole.room_.out_width),
          points_(whole.points_),
          out_points_(points_ + whole.room_.in_points()) {}

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

    /// Each thread has tiles of its own.
    void transform(int64_t begin, int64_t depth) {
      const int64_t parts = std::min<int64_t>(at::get_num_threads(), count_);
      at::parallel_for(0, parts, 1, [&](int64_t first_part, int64_t end_part) {
        for (int64_t part = first_part; part < end_part; ++part) {
          const int64_t first = part * count_ / parts, end = (part + 1) * count_ / parts;
          Tiles tiles{first, runs_of_windows(whole_.tiles_, begin + first, end - first, kRun)};
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
      int64_t first = 0;
      std::vector<WindowRun> runs;
    };

    /// [point][panel of channels][tile][channel]
    void transform_slice(const Tiles& tiles, int64_t image_slice) const {
      const GroupChannels& group = whole_.group_;
      const SquareTaps& taps = whole_.taps_;
      for (int64_t channel = 0; channel < whole_.in_width_; channel += kLanes<T>)
        transform_channels<winograd::kIn>(
            whole_.in_, {image_slice, taps.first[1], taps.first[2]}, tiles,
            group.first_in + channel, std::clamp<int64_t>(group.num_in - channel, 0, kLanes<T>),
            [](const Vector<T>* d, Vector<T>* line) { winograd::transform_input(d, line); },
            {points_of(image_slice) + channel / columns_ * tiles_ * columns_ + channel % columns_,
             point_size_, columns_});
    }

    /// [point][tile][k]
    void transform_outs(const Tiles& tiles, int64_t depth) const {
      const int64_t first = whole_.panels_.first_row(first_panel_);
      const int64_t count = whole_.panels_.first_row(end_panel_) - first;
      for (int64_t k = 0; k < count; k += kLanes<T>)
        transform_channels<winograd::kOut>(whole_.out_, {depth, 0, 0}, tiles,
                                           whole_.group_.first_out + first + k,
                                           std::min<int64_t>(kLanes<T>, count - k),
                                           [](const Vector<T>* y, Vector<T>* line) {
                                             winograd::transform_output_gradient(y, line);
                                           },
                                           {out_points_ + k, out_point_size_, out_width_});
    }

    /// to[point * point_stride + tile * tile_stride] is a register of channels.
    struct PointsAt {
      T* to;
      int64_t point_stride, tile_stride;
    };

    /// A register of channels of some tiles, whose squares begin at `first` from their own place.
    template <int kSize, class Line>
    void transform_channels(const StridedImage<const Stored>& image, const SpaceAxes& first,
                            const Tiles& tiles, int64_t first_channel, int64_t channels,
                            const Line& line, const PointsAt& points) const {
      constexpr int64_t kAll = kLanes<T>;
      constexpr int64_t kRowPixels =
          GradientRoom<T>::padded(kRun * winograd::kOut + kSize - winograd::kOut, kAll);
      T* pixels = thread_buffer<T>(kSize * kRowPixels * kAll);
      const Stored* slice = image.plane(0, first_channel) + first[0] * image.stride[0];
      for (const WindowRun& run : tiles.runs) {
        const int64_t row = run.at[1] * winograd::kOut + first[1];
        const int64_t column = run.at[2] * winograd::kOut + first[2];
        const int64_t count = run.length * winograd::kOut + kSize - winograd::kOut;
        for (int64_t i = 0; i < kSize; ++i) {
          const bool inside = row + i >= 0 && row + i < image.size[1];
          turn_pixels<Stored>(
              {slice + run.sample * image.batch_stride + (row + i) * image.stride[1] + column,
               image.channel_stride, channels, -column, inside ? image.size[2] - column : -column},
              count, pixels + i * kRowPixels * kAll, kAll);
        }
        T* to = points.to + (tiles.first + run.column) * points.tile_stride;
        for (int64_t tile = 0; tile < run.length; ++tile, to += points.tile_stride)
          winograd::transform_square<kSize, winograd::kIn, Vector<T>>(
              [&](int entry) {
                return load(pixels +
                            (entry / kSize * kRowPixels + tile * winograd::kOut + entry % kSize) *
                                kAll);
              },
              line,
              [&](int point, Vector<T> value) { store(to + point * points.point_stride, value); });
      }
    }

    /// Slices that lie outside the image add nothing, but their sums begin as zeros.
    void multiply(int64_t depth) {
      const SquareTaps& taps = whole_.taps_;
      at::parallel_for(0, kPoints, 1, [&](int64_t begin, int64_t end) {
        for (int64_t point = begin; point < end; ++point)
          for (int64_t slice = 0; slice < taps.slices; ++slice) {
            const bool inside = is_inside(depth, slice);
            if (!inside && begun_) continue;
            for (int64_t panel = first_panel_; panel < end_panel_; ++panel)
              for (int64_t column = 0; column < whole_.in_width_; column += columns_) {
                const T* points = points_of(taps.image_slice(depth, slice)) + point * point_size_ +
                                  column * tiles_;
                multiply_panel(
                    static_cast<int>(whole_.panels_.rows_of(panel)), inside ? count_ : 0,
                    {out_points_ + point * out_point_size_ + whole_.panels_.first_row(panel) -
                         whole_.panels_.first_row(first_panel_),
                     out_width_, points, columns_},
                    ends(point, slice, panel, column));
              }
          }
      });
      begun_ = true;
    }

    void multiply_panel(int rows, int64_t depth, const PanelPart<T>& part,
                        const PanelEnds<T>& ends) const {
      if (columns_ == kPanelColumns<T>)
        multiply_panels<T>(rows, depth, part, ends);
      else
        multiply_panels<T, 1>(rows, depth, part, ends);
    }

    PanelEnds<T> ends(int64_t point, int64_t slice, int64_t panel, int64_t column) const {
      T* sums = whole_.sums_of(point, slice, panel, column);
      return {nullptr, 0, nullptr, sums, columns_, begun_};
    }

    const WinogradGradient& whole_;
    const int64_t first_panel_, end_panel_, tiles_, columns_;
    const int64_t point_size_, out_point_size_, slice_size_, out_width_;
    T *const points_, *const out_points_;
    int64_t count_ = 0;   // tiles of the block that is under way
    bool begun_ = false;  // there are sums
  };

  /// From sums of points to gradients of kernels, a register of channels at a time, in the order in
  /// which sums lie in memory.
  void write(int64_t panel) const {
    const int64_t taps = std::ssize(taps_.entry);
    for (int64_t slice = 0; slice < taps_.slices; ++slice)
      for (int64_t column = 0; column < in_width_; column += room_.columns)
        for (int64_t row = 0; row < panels_.rows_of(panel); ++row)
          for (int64_t channel = column; channel < std::min(column + room_.columns, group_.num_in);
               channel += kLanes<T>) {
            T kernels[9][kLanes<T>];
            winograd::transform_square<winograd::kIn, winograd::kKernel, Vector<T>>(
                [&](int point) {
                  return load(sums_of(point, slice, panel, column) + row * room_.columns + channel -
                              column);
                },
                [](const Vector<T>* u, Vector<T>* g) {
                  winograd::transform_kernel_gradient<T>(u, g);
                },
                [&](int tap, Vector<T> value) { store(kernels[tap], value); });
            T* to = gradient_ +
                    ((panels_.first_row(panel) + row) * group_.num_in + channel) * taps + slice * 9;
            const int64_t count = std::min<int64_t>(kLanes<T>, group_.num_in - channel);
            for (int64_t lane = 0; lane < count; ++lane, to += taps)
              for (int tap = 0; tap < 9; ++tap) to[tap] += kernels[tap][lane];
          }
  }

  const StridedImage<const Stored> in_;
  const SquareTaps& taps_;
  const StridedImage<const Stored> out_;
  const GroupChannels group_;
  const SpaceAxes tiles_;
  const GradientRoom<T> room_;
  const int64_t in_width_ = room_.in_width;
  const RowPanels& panels_ = room_.panels;
  T* gradient_;
  T* const points_;
  const std::span<T> sums_;
  int64_t first_panel_ = 0, end_panel_ = 0;  // that have sums now
};

}  // namespace tessera
