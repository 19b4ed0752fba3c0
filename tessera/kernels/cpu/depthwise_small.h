#pragma once
// Depthwise convolutions of planes that are narrower than a few registers, by lanes of channels
// (depthwise_lanes.h): whole planes, whatever the stride, dilation and depth.

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "tessera/kernels/cpu/depthwise_lanes.h"
#include "tessera/kernels/cpu/depthwise_plan.h"
#include "tessera/kernels/cpu/thread_buffer.h"

namespace tessera {

/// What the windows of a plan read of some channels, in a buffer.
template <class T>
class LaneInput {
 public:
  LaneInput(const DepthwisePlan& plan, const StridedImage<const T>& image,
            const ThinGroups<T>& groups)
      : plan_(plan), image_(image), groups_(groups) {
    for (const int axis : {1, 2}) {
      const int64_t reach = (plan.positions[axis] - 1) * plan.step[axis] + plan.span(axis);
      (axis == 1 ? buffer_.rows : buffer_.columns) = reach;
      (axis == 1 ? buffer_.first_row : buffer_.first_column) = -plan.low[axis];
    }
  }

  int64_t numbers() const { return groups_.in * std::ssize(plan_.slices) * slice_numbers(); }
  int64_t position_step() const { return plan_.step[2] * kLanes<T>; }
  int64_t row_step() const { return plan_.step[1] * buffer_.columns * kLanes<T>; }

  /// Where the first position of a slice reads, for each channel of a group and each tap.
  std::vector<int64_t> places(const DepthwisePhase& phase) const {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < groups_.in; ++i)
      for (const DepthwiseTap& tap : phase.taps)
        all.push_back((i * std::ssize(plan_.slices) + tap.slice) * slice_numbers() +
                      buffer_.pixel(tap.h, tap.w) * kLanes<T>);
    return all;
  }

  /// `to` holds zeros wherever the image does not reach, from earlier calls or from the start.
  void load(int64_t sample, int64_t depth, int64_t first_channel, T* to) const {
    for (int64_t i = 0; i < groups_.in; ++i) {
      LanePlanes<const T> planes{.plane = {}, .count = kLanes<T>};
      for (int lane = 0; lane < kLanes<T>; ++lane) {
        const int64_t channel = std::min(first_channel + lane, groups_.total_out - 1);
        planes.plane[lane] = image_.plane(sample, groups_.first_in(channel) + i);
      }
      for (const int64_t offset : plan_.slices) {
        const int64_t at = depth * plan_.step[0] + offset;
        if (at < 0 || at >= image_.size[0])
          std::fill_n(to, slice_numbers(), T(0));
        else
          interleave(planes, image_, at * image_.stride[0], buffer_, to);
        to += slice_numbers();
      }
    }
  }

 private:
  int64_t slice_numbers() const { return buffer_.slice_pixels() * kLanes<T>; }

  const DepthwisePlan& plan_;
  const StridedImage<const T> image_;
  const ThinGroups<T> groups_;
  LaneBuffer buffer_;
};

/// Whether planes are so small that lanes of channels are faster, and fit the second-level cache.
template <class T>
bool prefers_lanes(const DepthwisePlan& plan, const LaneInput<T>& input,
                   const ThinGroups<T>& groups) {
  constexpr int64_t kMostNumbers = (256 << 10) / static_cast<int64_t>(sizeof(T));
  const int64_t out_pixels =
      plan.positions[1] * plan.out_step[1] * plan.positions[2] * plan.out_step[2];
  return plan.positions[2] * plan.out_step[2] < 2 * kLanes<T> &&
         2 * groups.total_out >= kLanes<T> &&
         input.numbers() + out_pixels * kLanes<T> <= kMostNumbers;
}

template <class T>
class DepthwiseLaneSum {
 public:
  DepthwiseLaneSum(const DepthwisePlan& plan, const LaneInput<T>& input,
                   const ThinGroups<T>& groups, const T* bias, const StridedImage<T>& out)
      : plan_(plan), input_(input), groups_(groups), bias_(bias), out_(out) {
    for (const DepthwisePhase& phase : plan.phases) places_.push_back(input.places(phase));
  }

  void run() const {
    constexpr int64_t kNumbersAtOnce = 1 << 15;
    const int64_t blocks = (out_.channels + kLanes<T> - 1) / kLanes<T>;
    const int64_t grain = std::max<int64_t>(1, kNumbersAtOnce / input_.numbers());
    at::parallel_for(0, out_.batch * blocks, grain, [&](int64_t begin, int64_t end) {
      const int64_t slice = out_.size[1] * out_.size[2] * kLanes<T>;
      T* const in = thread_buffer<T>(input_.numbers() + slice + kLanes<T>);
      std::fill_n(in, input_.numbers(), T(0));
      for (int64_t task = begin; task < end; ++task)
        for (int64_t depth = 0; depth < plan_.positions[0]; ++depth)
          run_block(task / blocks, depth, task % blocks * kLanes<T>, in, in + input_.numbers());
    });
  }

 private:
  void run_block(int64_t sample, int64_t depth, int64_t first_channel, T* in, T* out) const {
    LanePlanes<T> planes{.plane = {}, .count = 0};
    planes.count = static_cast<int>(std::min<int64_t>(kLanes<T>, out_.channels - first_channel));
    T* const start = out + out_.size[1] * out_.size[2] * kLanes<T>;
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      const int64_t channel = first_channel + std::min(lane, planes.count - 1);
      planes.plane[lane] = out_.plane(sample, channel);
      start[lane] = bias_ != nullptr ? bias_[channel] : T(0);
    }
    input_.load(sample, depth, first_channel, in);
    std::vector<T> weights;
    for (size_t i = 0; i < plan_.phases.size(); ++i) {
      const DepthwisePhase& phase = plan_.phases[i];
      const int64_t slice = depth * plan_.out_step[0] + phase.first[0];
      if (slice >= out_.size[0]) return;
      gather_weights(phase, first_channel, planes.count, weights);
      run_phase(phase, places_[i], weights.data(), in, start, out);
      const bool is_last =
          i + 1 == plan_.phases.size() || plan_.phases[i + 1].first[0] != phase.first[0];
      if (is_last) separate(out, out_.size[1], out_.size[2], planes, out_, slice * out_.stride[0]);
    }
  }

  /// [channel of the group][tap][lane].
  void gather_weights(const DepthwisePhase& phase, int64_t first_channel, int count,
                      std::vector<T>& weights) const {
    weights.resize(static_cast<size_t>(groups_.in) * phase.taps.size() * kLanes<T>);
    for (int lane = 0; lane < kLanes<T>; ++lane) {
      T* to = weights.data() + lane;
      for (int64_t i = 0; i < groups_.in; ++i) {
        const T* kernel = groups_.kernel(first_channel + std::min(lane, count - 1), i);
        for (const DepthwiseTap& tap : phase.taps) {
          *to = kernel[tap.entry];
          to += kLanes<T>;
        }
      }
    }
  }

  void run_phase(const DepthwisePhase& phase, const std::vector<int64_t>& places, const T* weights,
                 const T* in, const T* start, T* out) const {
    const auto count = [&](int axis) {
      const int64_t step = plan_.out_step[axis];
      return (out_.size[axis] - phase.first[axis] + step - 1) / step;
    };
    for (int64_t row = 0; row < count(1); ++row) {
      const int64_t at = (row * plan_.out_step[1] + phase.first[1]) * out_.size[2] + phase.first[2];
      sum_lane_row(in + row * input_.row_step(), places.data(), weights, std::ssize(places),
                   input_.position_step(), start, out + at * kLanes<T>,
                   plan_.out_step[2] * kLanes<T>, count(2));
    }
  }

  const DepthwisePlan& plan_;
  const LaneInput<T>& input_;
  const ThinGroups<T> groups_;
  const T* bias_;
  const StridedImage<T> out_;
  std::vector<std::vector<int64_t>> places_;
};

template <class T>
class DepthwiseLaneGradient {
 public:
  DepthwiseLaneGradient(const DepthwisePlan& plan, const LaneInput<T>& fine,
                        const StridedImage<const T>& coarse, const ThinGroups<T>& groups,
                        T* gradient)
      : plan_(plan),
        fine_(fine),
        coarse_(coarse),
        groups_(groups),
        gradient_(gradient),
        places_(fine.places(plan.phases[0])) {}

  /// One thread makes all sums of a channel.
  void run() const {
    constexpr int64_t kNumbersAtOnce = 1 << 15;
    const int64_t blocks = (coarse_.channels + kLanes<T> - 1) / kLanes<T>;
    const int64_t grain = std::max<int64_t>(1, kNumbersAtOnce / (fine_.numbers() * coarse_.batch));
    at::parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) run_block(block * kLanes<T>);
    });
  }

 private:
  void run_block(int64_t first_channel) const {
    const int64_t slice = plan_.positions[1] * plan_.positions[2] * kLanes<T>;
    T* const fine = thread_buffer<T>(fine_.numbers() + slice);
    T* const coarse = fine + fine_.numbers();
    std::fill_n(fine, fine_.numbers(), T(0));
    const LaneBuffer dense{.rows = plan_.positions[1], .columns = plan_.positions[2]};
    const int count =
        static_cast<int>(std::min<int64_t>(kLanes<T>, coarse_.channels - first_channel));
    std::vector<T> sums(places_.size() * kLanes<T>);
    std::vector<double> totals(sums.size());
    for (int64_t n = 0; n < coarse_.batch; ++n) {
      LanePlanes<const T> planes{.plane = {}, .count = count};
      for (int lane = 0; lane < kLanes<T>; ++lane)
        planes.plane[lane] = coarse_.plane(n, first_channel + std::min(lane, count - 1));
      for (int64_t depth = 0; depth < plan_.positions[0]; ++depth) {
        fine_.load(n, depth, first_channel, fine);
        interleave(planes, coarse_, depth * coarse_.stride[0], dense, coarse);
        std::ranges::fill(sums, T(0));
        add_lane_dots(fine, places_, fine_.position_step(), fine_.row_step(), coarse,
                      plan_.positions[1], plan_.positions[2], sums.data());
        for (size_t i = 0; i < sums.size(); ++i) totals[i] += sums[i];
      }
    }
    add_totals(first_channel, count, totals);
  }

  void add_totals(int64_t first_channel, int count, const std::vector<double>& totals) const {
    const std::vector<DepthwiseTap>& taps = plan_.phases[0].taps;
    for (int lane = 0; lane < count; ++lane) {
      const double* total = totals.data() + lane;
      for (int64_t i = 0; i < groups_.in; ++i) {
        T* to = gradient_ + (groups_.kernel(first_channel + lane, i) - groups_.weight);
        for (const DepthwiseTap& tap : taps) {
          to[tap.entry] += static_cast<T>(*total);
          total += kLanes<T>;
        }
      }
    }
  }

  const DepthwisePlan& plan_;
  const LaneInput<T>& fine_;
  const StridedImage<const T> coarse_;
  const ThinGroups<T> groups_;
  T* gradient_;
  std::vector<int64_t> places_;
};

}  // namespace tessera
