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
// the points of a block. Where all tiles are one block, kernels are used once: each thread
// transforms those of a panel of channels and multiplies them at once, in the cache.

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "tessera/kernels/cpu/panels.h"
#include "tessera/kernels/cpu/square_taps.h"
#include "tessera/kernels/cpu/thread_buffer.h"
#include "tessera/kernels/cpu/window_product.h"
#include "tessera/kernels/cpu/winograd_tiles.h"
#include "tessera/kernels/cpu/winograd_transform.h"

namespace tessera {

template <class Stored>
class WinogradProduct {
  using T = Number<Stored>;

 public:
  WinogradProduct(const StridedImage<const Stored>& in, const SquareTaps& taps,
                  const WindowWeight<T>& weight, const T* bias, const StridedImage<Stored>& out,
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
  /// Transformed kernels of these panels of rows.
  struct PackedPanels {
    T* data;
    int64_t first, end;
  };

  void run_panels(int64_t first, int64_t end) {
    const PackedPanels packed{packed_.data(), first, end};
    const int64_t num_panels = end - first;
    const int64_t total = out_.batch * tiles_[1] * tiles_[2];
    const int64_t blocks = (total + kColumns - 1) / kColumns;
    if (blocks == 1 && out_.size[0] == 1) return run_one_block(packed, total);
    pack_weight(packed);
    // Few blocks are cut by depth, too, and by channels, so that every thread has one.
    const int64_t wanted = (at::get_num_threads() + blocks - 1) / blocks;
    const int64_t depths = std::min(wanted, out_.size[0]);
    const int64_t shares = std::clamp<int64_t>(wanted / depths, 1, num_panels);
    at::parallel_for(0, blocks * depths * shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t first = task / shares / depths * kColumns;
        const int64_t depth = task / shares % depths, share = task % shares;
        Block block(*this,
                    runs_of_windows(tiles_, first, std::min(kColumns, total - first), kLanes<T>));
        block.run(depth * out_.size[0] / depths, (depth + 1) * out_.size[0] / depths, packed,
                  packed.first + share * num_panels / shares,
                  packed.first + (share + 1) * num_panels / shares);
      }
    });
  }

  /// Each thread has some of the panels, and room for one.
  void run_one_block(const PackedPanels& all, int64_t total) {
    const int64_t num_panels = all.end - all.first;
    const int64_t shares = std::min<int64_t>(at::get_num_threads(), num_panels);
    const int64_t per_row = kPoints * taps_.slices * group_.num_in;
    at::parallel_for(0, shares, 1, [&](int64_t begin, int64_t end) {
      for (int64_t share = begin; share < end; ++share) {
        Block block(*this, runs_of_windows(tiles_, 0, total, kLanes<T>));
        block.transform(0, 0);
        const int64_t first = all.first + share * num_panels / shares;
        const int64_t last = all.first + (share + 1) * num_panels / shares;
        const int64_t rows_before = panels_.first_row(first) - panels_.first_row(all.first);
        for (int64_t panel = first; panel < last; ++panel) {
          const PackedPanels one{all.data + rows_before * per_row, panel, panel + 1};
          for (int64_t slice = 0; slice < taps_.slices; ++slice) pack_panel(one, panel, slice);
          block.multiply_and_write(0, one, panel);
        }
      }
    });
  }

  static constexpr int kPoints = winograd::kPoints;
  static constexpr int64_t kColumns = kPanelColumns<T>;

  int64_t tiles_along(int axis) const {
    return (out_.size[axis] + winograd::kOut - 1) / winograd::kOut;
  }

  /// The transformed kernels of a panel of rows: [channel][row].
  T* packed_panel(const PackedPanels& packed, int64_t point, int64_t slice, int64_t panel) const {
    const int64_t before = panels_.first_row(packed.first);
    const int64_t rows = panels_.first_row(packed.end) - before;
    return packed.data +
           ((point * taps_.slices + slice) * rows + panels_.first_row(panel) - before) *
               group_.num_in;
  }

  void pack_weight(const PackedPanels& packed) const {
    at::parallel_for(packed.first * taps_.slices, packed.end * taps_.slices, 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t task = begin; task < end; ++task)
                         pack_panel(packed, task / taps_.slices, task % taps_.slices);
                     });
  }

  /// Rows are lanes. Some channels at a time, so that neither the weight nor the points, which lie
  /// far apart, are touched in small parts.
  void pack_panel(const PackedPanels& packed, int64_t panel, int64_t slice) const {
    constexpr int64_t kChannels = 8;
    constexpr int64_t kWidth = (kPanelRows + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    const int64_t rows = panels_.rows_of(panel);
    const T* from = weight_.data + panels_.first_row(panel) * weight_.out_stride;
    T kernels[kChannels][9][kWidth] = {};
    T points[kPoints][kChannels * kPanelRows + kWidth];
    for (int64_t first = 0; first < group_.num_in; first += kChannels) {
      const int64_t count = std::min(kChannels, group_.num_in - first);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t channel = 0; channel < count; ++channel)
          for (int64_t tap = 0; tap < 9; ++tap)
            kernels[channel][tap][row] =
                from[row * weight_.out_stride + (first + channel) * weight_.in_stride +
                     taps_.entry[static_cast<size_t>(slice * 9 + tap)]];
      for (int64_t channel = 0; channel < count; ++channel)
        for (int64_t lane = 0; lane < rows; lane += kLanes<T>)
          winograd::transform_square<3, 6, Vector<T>>(
              [&](int tap) { return load(&kernels[channel][tap][lane]); },
              [](const Vector<T>* g, Vector<T>* to) { winograd::transform_kernel<T>(g, to); },
              // The next channel's rows are written over lanes that are not needed.
              [&](int point, Vector<T> value) {
                store(&points[point][channel * rows + lane], value);
              });
      for (int point = 0; point < kPoints; ++point)
        std::copy_n(points[point], count * rows,
                    packed_panel(packed, point, slice, panel) + first * rows);
    }
  }

  /// Some tiles of the plane, through the depth.
  class Block {
   public:
    /// A panel of tiles, in runs that end where registers do.
    Block(const WinogradProduct& product, const std::vector<WindowRun>& runs)
        : product_(product),
          columns_(runs.back().column + runs.back().length <= kLanes<T> ? kLanes<T> : kColumns),
          windows_(product.in_, runs, winograd::kIn, product.taps_.first[1],
                   product.taps_.first[2]),
          tiles_(product.out_, runs, winograd::kOut, 0, 0),
          point_size_(winograd::apart<T>(product.group_.num_in * kColumns)),
          slice_size_(kPoints * point_size_),
          sum_size_(winograd::apart<T>(product.panels_.height() * kColumns)) {
      points_ = thread_buffer<T>(product.taps_.slices * slice_size_ + kPoints * sum_size_);
      sums_ = points_ + product.taps_.slices * slice_size_;
    }

    void run(int64_t depth_begin, int64_t depth_end, const PackedPanels& packed,
             int64_t first_panel, int64_t end_panel) {
      for (int64_t depth = depth_begin; depth < depth_end; ++depth) {
        // The first output needs all slices, each further one a new one.
        transform(depth, depth == depth_begin ? 0 : product_.taps_.slices - 1);
        for (int64_t panel = first_panel; panel < end_panel; ++panel)
          multiply_and_write(depth, packed, panel);
      }
    }

    /// The slices that an output needs, from one of them on.
    void transform(int64_t depth, int64_t first_slice) {
      const SquareTaps& taps = product_.taps_;
      for (int64_t slice = first_slice; slice < taps.slices; ++slice)
        if (is_inside(depth, slice)) transform_slice(taps.image_slice(depth, slice));
    }

    void multiply_and_write(int64_t depth, const PackedPanels& packed, int64_t panel) {
      multiply(depth, packed, panel);
      write(depth, panel);
    }

   private:
    bool is_inside(int64_t depth, int64_t slice) const {
      return product_.taps_.is_inside(depth, slice, product_.in_.size[0]);
    }
    T* points_of(int64_t image_slice) const {
      return points_ + product_.taps_.place_of(image_slice) * slice_size_;
    }

    /// [point][channel][column]
    void transform_slice(int64_t image_slice) {
      constexpr int64_t kAhead = 2;  // channels that the memory is asked for beforehand
      const GroupChannels& group = product_.group_;
      const StridedImage<const Stored>& in = product_.in_;
      T* to = points_of(image_slice);
      for (int64_t channel = 0; channel < group.num_in; ++channel) {
        const Stored* slice = in.plane(0, group.first_in + channel) + image_slice * in.stride[0];
        for (int64_t column = 0; column < columns_; column += kLanes<T>) {
          const winograd::LaneSegments segments = windows_.at(column / kLanes<T>);
          if (channel + kAhead < group.num_in)
            winograd::prefetch_squares(slice + kAhead * in.channel_stride, in.stride[1], segments);
          transform_windows(slice, segments, to + channel * kColumns + column);
        }
      }
    }

    void transform_windows(const Stored* slice, winograd::LaneSegments segments, T* to) const {
      Vector<T> half[winograd::kIn][winograd::kIn];
      for (int row = 0; row < winograd::kIn; ++row) {
        Vector<T> pixels[winograd::kIn];
        winograd::load_square_row<winograd::kIn>(slice, product_.in_.stride[1], segments, row,
                                                 pixels);
        winograd::transform_input(pixels, half[row]);
      }
      for (int column = 0; column < winograd::kIn; ++column) {
        Vector<T> from[winograd::kIn], points[winograd::kIn];
        for (int row = 0; row < winograd::kIn; ++row) from[row] = half[row][column];
        winograd::transform_input(from, points);
        for (int row = 0; row < winograd::kIn; ++row)
          store(to + (row * winograd::kIn + column) * point_size_, points[row]);
      }
    }

    /// Sums are [point][row][column].
    void multiply(int64_t depth, const PackedPanels& packed, int64_t panel) {
      const int64_t rows = product_.panels_.rows_of(panel);
      std::array<PanelPart<T>, SquareTaps::kMostSlices> parts;
      for (int point = 0; point < kPoints; ++point) {
        size_t count = 0;
        for (int64_t slice = 0; slice < product_.taps_.slices; ++slice)
          if (is_inside(depth, slice))
            parts[count++] = {
                product_.packed_panel(packed, point, slice, panel), rows,
                points_of(product_.taps_.image_slice(depth, slice)) + point * point_size_};
        const std::span<const PanelPart<T>> inside(parts.data(), count);
        const PanelEnds<T> ends{nullptr, kColumns, nullptr, sums_ + point * sum_size_, kColumns};
        if (columns_ == kColumns)
          multiply_panels<T>(static_cast<int>(rows), inside, product_.group_.num_in, ends);
        else
          multiply_panels<T, 1>(static_cast<int>(rows), inside, product_.group_.num_in, ends);
      }
    }

    void write(int64_t depth, int64_t panel) {
      const StridedImage<Stored>& out = product_.out_;
      for (int64_t row = 0; row < product_.panels_.rows_of(panel); ++row) {
        const int64_t channel = product_.group_.first_out + product_.panels_.first_row(panel) + row;
        const T start = product_.bias_ != nullptr ? product_.bias_[channel] : T(0);
        Stored* slice = out.plane(0, channel) + depth * out.stride[0];
        for (int64_t column = 0; column < columns_; column += kLanes<T>)
          write_tiles(sums_ + row * kColumns + column, start, slice, tiles_.at(column / kLanes<T>));
      }
    }

    void write_tiles(const T* sums, T start, Stored* slice, winograd::LaneSegments segments) const {
      Vector<T> half[winograd::kOut][winograd::kIn];
      for (int column = 0; column < winograd::kIn; ++column) {
        Vector<T> from[winograd::kIn], to[winograd::kOut];
        for (int row = 0; row < winograd::kIn; ++row)
          from[row] = load(sums + (row * winograd::kIn + column) * sum_size_);
        winograd::transform_output(from, to);
        for (int row = 0; row < winograd::kOut; ++row) half[row][column] = to[row];
      }
      for (int row = 0; row < winograd::kOut; ++row) {
        Vector<T> pixels[winograd::kOut];
        winograd::transform_output(half[row], pixels);
        for (Vector<T>& each : pixels) each += start;
        winograd::store_tile_row(slice, product_.out_.stride[1], segments, row, pixels);
      }
    }

    const WinogradProduct& product_;
    const int64_t columns_;  // that have tiles: one register or two
    const winograd::TileRegisters windows_, tiles_;
    const int64_t point_size_, slice_size_, sum_size_;
    T *points_ = nullptr, *sums_ = nullptr;
  };

  const StridedImage<const Stored> in_;
  const SquareTaps& taps_;
  const T* bias_;
  const StridedImage<Stored> out_;
  const GroupChannels group_;
  const WindowWeight<T> weight_;
  const RowPanels panels_;
  const SpaceAxes tiles_;
  const std::span<T> packed_;
};

}  // namespace tessera
