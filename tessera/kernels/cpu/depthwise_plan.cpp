#include "tessera/kernels/cpu/depthwise_plan.h"

#include <array>

namespace tessera {
namespace {

using TapsByAxis = std::array<std::vector<AxisTap>, 3>;

int64_t least_remainder(int64_t a, int64_t b) { return ((a % b) + b) % b; }

/// Taps that meet in the fine pixels `first` of each stride.
std::vector<AxisTap> taps_over_coarse(int64_t kernel, int64_t stride, int64_t dilation,
                                      int64_t first) {
  std::vector<AxisTap> taps;
  for (int64_t tap = kernel - 1; tap >= 0; --tap) {
    const int64_t reached = first - tap * dilation;
    if (least_remainder(reached, stride) == 0) taps.push_back({reached / stride, tap});
  }
  return taps;
}

bool are_neighbours(const std::vector<AxisTap>& taps) {
  return taps.back().offset - taps.front().offset == std::ssize(taps) - 1;
}

int64_t square_of(const TapsByAxis& taps) {
  const int64_t size = std::ssize(taps[1]);
  const bool is_square =
      size > 0 && std::ssize(taps[2]) == size && are_neighbours(taps[1]) && are_neighbours(taps[2]);
  return is_square ? size : 0;
}

/// Of all phases' taps.
void find_reach(DepthwisePlan& plan, const std::vector<TapsByAxis>& taps) {
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<int64_t> offsets;
    for (const TapsByAxis& phase : taps)
      for (const AxisTap& tap : phase[axis]) offsets.push_back(tap.offset);
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    if (offsets.empty()) offsets.push_back(0);  // so few fine pixels that no window meets there
    plan.low[axis] = offsets.front();
    plan.high[axis] = offsets.back();
    if (axis == 0) plan.slices = offsets;
  }
}

void add_taps(DepthwisePlan& plan, DepthwisePhase& phase, const TapsByAxis& taps,
              const SpaceAxes& kernel) {
  for (const AxisTap& d : taps[0]) {
    const int64_t slice = std::ranges::find(plan.slices, d.offset) - plan.slices.begin();
    for (const AxisTap& h : taps[1])
      for (const AxisTap& w : taps[2])
        phase.taps.push_back({slice, h.offset - plan.low[1], w.offset - plan.low[2],
                              (d.place * kernel[1] + h.place) * kernel[2] + w.place});
  }
  if (plan.step[1] == 1 && plan.step[2] == 1) phase.square = square_of(taps);
}

void add_phases(DepthwisePlan& plan, const std::vector<SpaceAxes>& firsts,
                const std::vector<TapsByAxis>& taps, const SpaceAxes& kernel) {
  find_reach(plan, taps);
  for (size_t i = 0; i < firsts.size(); ++i) {
    plan.phases.push_back({firsts[i], {}, 0});
    add_taps(plan, plan.phases.back(), taps[i], kernel);
  }
}

/// Equal parts of `size`, of about `most` each, whole multiples of `unit` where there are several.
int64_t part_of(int64_t size, int64_t most, int64_t unit) {
  most = std::max<int64_t>(most, 1);
  const int64_t parts = (size + most - 1) / most;
  if (parts <= 1) return std::max<int64_t>(size, 1);
  return (size / parts + unit) / unit * unit;
}

}  // namespace

DepthwisePlan plan_over_fine(const SpaceAxes& kernel, const SpaceAxes& stride,
                             const SpaceAxes& dilation, const SpaceAxes& fine_begin,
                             const SpaceAxes& coarse_size) {
  DepthwisePlan plan{.positions = coarse_size, .step = stride};
  TapsByAxis taps;
  for (int axis = 0; axis < 3; ++axis)
    for (int64_t tap = 0; tap < kernel[axis]; ++tap)
      taps[axis].push_back({tap * dilation[axis] - fine_begin[axis], tap});
  add_phases(plan, {SpaceAxes{}}, {taps}, kernel);
  return plan;
}

DepthwisePlan plan_over_coarse(const SpaceAxes& kernel, const SpaceAxes& stride,
                               const SpaceAxes& dilation, const SpaceAxes& fine_begin,
                               const SpaceAxes& fine_size) {
  DepthwisePlan plan{.out_step = stride};
  SpaceAxes phases;
  for (int axis = 0; axis < 3; ++axis) {
    plan.positions[axis] = (fine_size[axis] + stride[axis] - 1) / stride[axis];
    phases[axis] = std::min(stride[axis], fine_size[axis]);
  }
  std::vector<SpaceAxes> firsts;
  std::vector<TapsByAxis> taps;
  SpaceAxes first;
  for (first[0] = 0; first[0] < phases[0]; ++first[0])
    for (first[1] = 0; first[1] < phases[1]; ++first[1])
      for (first[2] = 0; first[2] < phases[2]; ++first[2]) {
        TapsByAxis here;
        for (int axis = 0; axis < 3; ++axis)
          here[axis] = taps_over_coarse(kernel[axis], stride[axis], dilation[axis],
                                        first[axis] + fine_begin[axis]);
        firsts.push_back(first);
        taps.push_back(here);
      }
  add_phases(plan, firsts, taps, kernel);
  return plan;
}

void cut_into_bands(DepthwisePlan& plan, int64_t channels, int64_t bytes) {
  constexpr int64_t kBandBytes = 32 << 10, kMostColumns = 512;
  plan.block_columns = part_of(plan.positions[2], kMostColumns, 64);
  const int64_t planes = channels * std::ssize(plan.slices) * plan.step[1] * plan.step[2];
  const int64_t row_bytes = planes * bytes * (plan.block_columns + plan.span(2) / plan.step[2]);
  const int64_t halo = plan.span(1) / plan.step[1];
  plan.band_rows = part_of(plan.positions[1], std::max(kBandBytes / row_bytes - halo, halo), 4);
}

}  // namespace tessera
