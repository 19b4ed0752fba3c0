#pragma once
// Depthwise convolutions row by row: sums of shifted rows (depthwise_sums.h), in bands that fit the
// first-level cache. Outputs do not depend on each other, so any cut gives the same bits.

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "tessera/kernels/cpu/depthwise_plan.h"
#include "tessera/kernels/cpu/depthwise_source.h"
#include "tessera/kernels/cpu/depthwise_sums.h"
#include "tessera/kernels/cpu/partial_vector.h"
#include "tessera/kernels/cpu/thread_buffer.h"

namespace tessera {

template <class T>
class DepthwiseSum {
 public:
  DepthwiseSum(const DepthwisePlan& plan, const StridedImage<const T>& in,
               const ThinGroups<T>& groups, const T* bias, const StridedImage<T>& out)
      : plan_(plan), groups_(groups), bias_(bias), out_(out), source_(plan, in) {}

  void run() const {
    constexpr int64_t kNumbersAtOnce = 1 << 15;
    const int64_t depths = plan_.positions[0];
    const int64_t tasks = out_.batch * out_.channels * depths * plan_.num_bands();
    const int64_t numbers = plan_.band_rows * plan_.positions[2];
    at::parallel_for(0, tasks, std::max<int64_t>(1, kNumbersAtOnce / numbers),
                     [&](int64_t begin, int64_t end) { run_tasks(begin, end); });
  }

 private:
  static constexpr int64_t kSlack = 8 * kLanes<T>;  // read and written, and of no account

  void run_tasks(int64_t begin, int64_t end) const {
    const int64_t packed = groups_.in * source_.plane_numbers() + kSlack;
    T* const buffer = thread_buffer<T>(packed + plan_.band_rows * source_.pitch() + kSlack);
    std::vector<ShiftedTerm<T>> terms;
    int64_t rest = begin;
    const int64_t band = rest % plan_.num_bands();
    const int64_t depth = (rest /= plan_.num_bands()) % plan_.positions[0];
    const int64_t channel = (rest /= plan_.positions[0]) % out_.channels;
    DepthwiseBand at{.sample = rest / out_.channels, .depth = depth, .row = band * plan_.band_rows};
    int64_t out_channel = channel;
    for (int64_t task = begin; task < end; ++task) {
      run_band(at, out_channel, buffer, buffer + packed, terms);
      if ((at.row += plan_.band_rows) < plan_.positions[1]) continue;
      at.row = 0;
      if (++at.depth < plan_.positions[0]) continue;
      at.depth = 0;
      if (++out_channel < out_.channels) continue;
      out_channel = 0;
      ++at.sample;
    }
  }

  void run_band(DepthwiseBand band, int64_t channel, T* packed, T* sums,
                std::vector<ShiftedTerm<T>>& terms) const {
    band.rows = std::min(plan_.band_rows, plan_.positions[1] - band.row);
    for (; band.column < plan_.positions[2]; band.column += plan_.block_columns) {
      band.columns = std::min(plan_.block_columns, plan_.positions[2] - band.column);
      const bool is_direct = band.columns >= kLanes<T> && writes_rows() && source_.is_direct(band);
      if (!is_direct)
        for (int64_t i = 0; i < groups_.in; ++i)
          source_.pack(band, groups_.first_in(channel) + i, packed + i * source_.plane_numbers());
      for (const DepthwisePhase& phase : plan_.phases) {
        set_terms(terms, phase, band, channel, is_direct ? nullptr : packed);
        run_phase(phase, band, channel, terms, is_direct ? source_.direct_pitch() : source_.pitch(),
                  is_direct ? source_.direct_step() : 1, sums);
      }
    }
  }

  void set_terms(std::vector<ShiftedTerm<T>>& terms, const DepthwisePhase& phase,
                 const DepthwiseBand& band, int64_t channel, const T* packed) const {
    terms.clear();
    for (int64_t i = 0; i < groups_.in; ++i) {
      const T* kernel = groups_.kernel(channel, i);
      const T* plane = packed + i * source_.plane_numbers();
      for (const DepthwiseTap& tap : phase.taps)
        terms.push_back({packed == nullptr
                             ? source_.direct_place(band, groups_.first_in(channel) + i, tap)
                             : plane + source_.packed_offset(tap),
                         kernel[tap.entry]});
    }
  }

  bool writes_rows() const { return plan_.out_step[2] * out_.stride[2] == 1; }

  /// Straight into the output where its rows are wide and whole, else as one long row that is
  /// copied.
  void run_phase(const DepthwisePhase& phase, DepthwiseBand band, int64_t channel,
                 std::span<const ShiftedTerm<T>> terms, int64_t pitch, int64_t step,
                 T* sums) const {
    const T start = bias_ != nullptr ? bias_[channel] : T(0);
    const auto place = [&](int axis, int64_t position) {
      return position * plan_.out_step[axis] + phase.first[axis];
    };
    const auto fitting = [&](int axis, int64_t position, int64_t count) {
      const int64_t step = plan_.out_step[axis];
      const int64_t room = out_.size[axis] - place(axis, position) + step - 1;
      return std::clamp<int64_t>(room / step, 0, count);
    };
    band.rows = fitting(1, band.row, band.rows);
    band.columns = fitting(2, band.column, band.columns);
    if (fitting(0, band.depth, 1) * band.rows * band.columns == 0) return;
    T* to = out_.plane(band.sample, channel) + place(0, band.depth) * out_.stride[0] +
            place(1, band.row) * out_.stride[1] + place(2, band.column) * out_.stride[2];
    const int64_t to_pitch = plan_.out_step[1] * out_.stride[1];
    const int64_t to_step = plan_.out_step[2] * out_.stride[2];
    if (band.columns >= kLanes<T> && writes_rows())
      return sum_rows(step == 2 ? kEverySecond : phase.square, terms, start, pitch, to, to_pitch,
                      band);
    const int64_t width = (band.rows - 1) * pitch + band.columns;
    sum_row<1>(terms, start, 0, sums, (width + kLanes<T> - 1) / kLanes<T> * kLanes<T>);
    for (int64_t row = 0; row < band.rows; ++row)
      write_row(to + row * to_pitch, to_step, sums + row * pitch, band.columns);
  }

  static constexpr int64_t kEverySecond = -1;  // instead of a square

  static void sum_rows(int64_t square, std::span<const ShiftedTerm<T>> terms, T start,
                       int64_t pitch, T* to, int64_t to_pitch, const DepthwiseBand& band) {
    switch (square) {
      case 3:
        return sum_square_rows<T, 3>(terms, start, pitch, to, to_pitch, band.rows, band.columns);
      case 5:
        return sum_square_rows<T, 5>(terms, start, pitch, to, to_pitch, band.rows, band.columns);
      case 7:
        return sum_square_rows<T, 7>(terms, start, pitch, to, to_pitch, band.rows, band.columns);
      default:
        const auto sum = square == kEverySecond ? sum_row<2, T> : sum_row<1, T>;
        for (int64_t row = 0; row < band.rows; ++row)
          sum(terms, start, row * pitch, to + row * to_pitch, band.columns);
    }
  }

  static void write_row(T* to, int64_t step, const T* from, int64_t count) {
    if (step == 1) return copy_run(to, from, count);
    if (step == 2)
      for (int64_t i = 0; i < count; i += kLanes<T>)
        store_every_second(to + 2 * i, load(from + i), std::min<int64_t>(kLanes<T>, count - i));
    else
      for (int64_t i = 0; i < count; ++i) to[i * step] = from[i];
  }

  const DepthwisePlan& plan_;
  const ThinGroups<T> groups_;
  const T* bias_;
  const StridedImage<T> out_;
  const DepthwiseSource<T> source_;
};

}  // namespace tessera
