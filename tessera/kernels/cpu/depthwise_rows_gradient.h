#pragma once
// Gradients of the kernels of a depthwise convolution, row by row: products of the coarse plane
// with the shifted fine ones.

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "tessera/kernels/cpu/depthwise_plan.h"
#include "tessera/kernels/cpu/depthwise_source.h"
#include "tessera/kernels/cpu/depthwise_sums.h"
#include "tessera/kernels/cpu/thread_buffer.h"

namespace tessera {

/// Calls visit(band) for the bands of one output plane.
template <class Visit>
void for_bands(const DepthwisePlan& plan, int64_t sample, Visit&& visit) {
  DepthwiseBand band{.sample = sample};
  for (; band.depth < plan.positions[0]; ++band.depth)
    for (band.row = 0; band.row < plan.positions[1]; band.row += plan.band_rows)
      for (band.column = 0; band.column < plan.positions[2]; band.column += plan.block_columns) {
        band.rows = std::min(plan.band_rows, plan.positions[1] - band.row);
        band.columns = std::min(plan.block_columns, plan.positions[2] - band.column);
        visit(band);
      }
}

template <class T>
class DepthwiseGradient {
 public:
  DepthwiseGradient(const DepthwisePlan& plan, const StridedImage<const T>& fine,
                    const StridedImage<const T>& coarse, const ThinGroups<T>& groups, T* gradient)
      : plan_(plan),
        coarse_(coarse),
        groups_(groups),
        gradient_(gradient),
        source_(plan, fine),
        other_(one_to_one(plan)),
        other_source_(other_, coarse) {}

  /// One thread makes all sums of a channel.
  void run() const {
    constexpr int64_t kNumbersAtOnce = 1 << 15;
    const int64_t numbers = std::max<int64_t>(1, coarse_.batch * coarse_.num_pixels());
    const int64_t grain = std::max<int64_t>(1, kNumbersAtOnce / numbers);
    at::parallel_for(0, coarse_.channels, grain, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) run_channel(channel);
    });
  }

 private:
  /// The coarse image is read pixel by pixel, in rows that are as far apart as those of the fine
  /// one, with zeros between them.
  static DepthwisePlan one_to_one(const DepthwisePlan& plan) {
    DepthwisePlan ones;
    ones.positions = plan.positions;
    ones.slices = {0};
    ones.high[2] = (plan.span(2) - 1) / plan.step[2];
    ones.band_rows = plan.band_rows;
    ones.block_columns = plan.block_columns;
    return ones;
  }

  void run_channel(int64_t channel) const {
    const std::vector<DepthwiseTap>& taps = plan_.phases[0].taps;
    const int64_t numbers = source_.plane_numbers() + kLanes<T>;
    T* const packed = thread_buffer<T>(numbers + other_source_.plane_numbers() + kLanes<T>);
    T* const other = packed + numbers;
    std::vector<ShiftedTerm<T>> terms(taps.size());
    std::vector<double> sums(taps.size());
    for (int64_t i = 0; i < groups_.in; ++i) {
      std::ranges::fill(sums, 0.0);
      for (int64_t n = 0; n < coarse_.batch; ++n)
        for_bands(plan_, n, [&](const DepthwiseBand& band) {
          add_band(band, channel, groups_.first_in(channel) + i, packed, other, terms, sums);
        });
      T* to = gradient_ + (groups_.kernel(channel, i) - groups_.weight);
      for (size_t tap = 0; tap < taps.size(); ++tap)
        to[taps[tap].entry] += static_cast<T>(sums[tap]);
    }
  }

  void add_band(const DepthwiseBand& band, int64_t channel, int64_t fine_channel, T* packed,
                T* other, std::vector<ShiftedTerm<T>>& terms, std::vector<double>& sums) const {
    const std::vector<DepthwiseTap>& taps = plan_.phases[0].taps;
    if (band.columns >= kLanes<T> && coarse_.stride[2] == 1 && source_.is_direct(band)) {
      for (size_t tap = 0; tap < taps.size(); ++tap)
        terms[tap].at = source_.direct_place(band, fine_channel, taps[tap]);
      const auto add = source_.direct_step() == 2 ? add_shifted_dots<2, T> : add_shifted_dots<1, T>;
      return add(terms, source_.direct_pitch(), other_source_.direct_place(band, channel, {}),
                 coarse_.stride[1], band.rows, band.columns, sums.data());
    }
    source_.pack(band, fine_channel, packed);
    std::fill_n(packed + source_.plane_numbers(), kLanes<T>, T(0));
    other_source_.pack(band, channel, other);
    clear_gaps(band, other);
    for (size_t tap = 0; tap < taps.size(); ++tap)
      terms[tap].at = packed + source_.packed_offset(taps[tap]);
    const int64_t width = (band.rows - 1) * source_.pitch() + band.columns;
    add_shifted_dots<1, T>(terms, 0, other, 0, 1, (width + kLanes<T> - 1) / kLanes<T> * kLanes<T>,
                           sums.data());
  }

  /// What is not in the band is zero, also where the image goes on.
  void clear_gaps(const DepthwiseBand& band, T* other) const {
    const int64_t pitch = source_.pitch();
    for (int64_t row = 0; row < band.rows; ++row)
      std::fill(other + row * pitch + band.columns, other + (row + 1) * pitch, T(0));
    std::fill_n(other + band.rows * pitch, kLanes<T>, T(0));
  }

  const DepthwisePlan& plan_;
  const StridedImage<const T> coarse_;
  const ThinGroups<T> groups_;
  T* gradient_;
  const DepthwiseSource<T> source_;
  const DepthwisePlan other_;
  const DepthwiseSource<T> other_source_;
};

}  // namespace tessera
