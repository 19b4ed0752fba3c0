#pragma once
// Windows whose taps are 3x3 squares: those that Winograd's tiles are for. In a volume there is a
// square for each of a few slices.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/kernels/cpu/window_rows.h"

namespace tessera {

/// How the taps of windows form 3x3 squares, one for each slice of the depth.
struct SquareTaps {
  static constexpr int64_t kMostSlices = 3;  // with which Winograd's tiles are worth it

  SpaceAxes first{};  // the least offset along each axis
  int64_t slices = 0;
  std::vector<int64_t> entry;  // [slice][3][3]

  /// None where they form anything else, or windows do not stand at every pixel.
  static std::optional<SquareTaps> of(const Windows& windows) {
    if (windows.step != SpaceAxes{1, 1, 1} || windows.taps.size() % 9 != 0 || windows.taps.empty())
      return std::nullopt;
    SquareTaps square;
    square.first = windows.taps.front().offset;
    for (const Tap& tap : windows.taps)
      for (int axis = 0; axis < 3; ++axis)
        square.first[axis] = std::min(square.first[axis], tap.offset[axis]);
    square.slices = std::ssize(windows.taps) / 9;
    square.entry.assign(windows.taps.size(), -1);
    for (const Tap& tap : windows.taps) {
      const int64_t d = tap.offset[0] - square.first[0], h = tap.offset[1] - square.first[1],
                    w = tap.offset[2] - square.first[2];
      if (d >= square.slices || h >= 3 || w >= 3) return std::nullopt;
      square.entry[static_cast<size_t>((d * 3 + h) * 3 + w)] = tap.entry;
    }
    if (std::ranges::find(square.entry, -1) != square.entry.end()) return std::nullopt;
    return square;
  }

  /// Which slice of the image the output at `depth` reads by taps of `slice`.
  int64_t image_slice(int64_t depth, int64_t slice) const { return depth + first[0] + slice; }
  bool is_inside(int64_t depth, int64_t slice, int64_t image_depth) const {
    const int64_t at = image_slice(depth, slice);
    return at >= 0 && at < image_depth;
  }
  /// Of `slices` places, which slices of the image take in turns: neighbours have different ones.
  int64_t place_of(int64_t at) const { return (at % slices + slices) % slices; }
};

}  // namespace tessera
