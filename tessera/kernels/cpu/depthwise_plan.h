#pragma once
// Which input pixel each tap of a depthwise convolution reads, and which output pixel the sum is.
// Windows stand at positions; a convolution has one phase, a transposed one of stride s has s along
// each axis, which differ in their taps:
//
//   position p reads   p * step + tap           of the input
//            writes    p * out_step + first     of the output, `first` of each phase
//
// Planes are worked off in bands of rows that fit the first-level cache.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tessera/kernels/cpu/strided_image.h"

namespace tessera {

/// The taps of one axis: where they read, in ascending order, and their places in the kernel.
struct AxisTap {
  int64_t offset = 0, place = 0;
};

struct DepthwiseTap {
  int64_t slice = 0;     // index of its offset along the depth
  int64_t h = 0, w = 0;  // from the least offset on
  int64_t entry = 0;     // of the kernel
};

struct DepthwisePhase {
  SpaceAxes first{};
  std::vector<DepthwiseTap> taps = {};  // by slices, rows, columns
  int64_t square = 0;                   // k where each slice has k x k neighbours, else 0
};

struct DepthwisePlan {
  SpaceAxes positions{};
  SpaceAxes step{1, 1, 1}, out_step{1, 1, 1};
  std::vector<DepthwisePhase> phases = {};
  std::vector<int64_t> slices = {};  // offsets along the depth
  SpaceAxes low{}, high{};           // the least and the largest offset of all taps
  int64_t band_rows = 0, block_columns = 0;

  int64_t span(int axis) const { return high[axis] - low[axis] + 1; }
  int64_t num_bands() const { return (positions[1] + band_rows - 1) / band_rows; }
  int64_t num_blocks() const { return (positions[2] + block_columns - 1) / block_columns; }
};

/// The fine image is read.
DepthwisePlan plan_over_fine(const SpaceAxes& kernel, const SpaceAxes& stride,
                             const SpaceAxes& dilation, const SpaceAxes& fine_begin,
                             const SpaceAxes& coarse_size);

/// The coarse image is read.
DepthwisePlan plan_over_coarse(const SpaceAxes& kernel, const SpaceAxes& stride,
                               const SpaceAxes& dilation, const SpaceAxes& fine_begin,
                               const SpaceAxes& fine_size);

/// Sets band_rows and block_columns, for input numbers of `bytes` from `channels` planes.
void cut_into_bands(DepthwisePlan& plan, int64_t channels, int64_t bytes);

/// The kernel that connects an input plane and an output plane of the same group.
template <class T>
struct ThinGroups {
  const T* weight = nullptr;
  int64_t in = 1, out = 1;  // channels of a group
  int64_t out_stride = 0, in_stride = 0;
  int64_t total_out = 0;  // channels of all groups

  int64_t first_in(int64_t out_channel) const { return out_channel / out * in; }
  const T* kernel(int64_t out_channel, int64_t in_of_group) const {
    const int64_t group = out_channel / out;
    return weight + group * std::max(in * in_stride, out * out_stride) +
           out_channel % out * out_stride + in_of_group * in_stride;
  }
};

}  // namespace tessera
