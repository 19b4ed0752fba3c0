#pragma once
// Views of any strides that are walked together, one element to a thread. Axes are in the order of
// the first view's memory, and joined where all views allow it, so that threads beside each other
// read memory beside each other, and dense views have one axis.

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::cuda {

inline constexpr int kWalkAxes = 6, kWalkViews = 3;

struct StridedWalk {
  int64_t count = 1;
  int num_axes = 0;
  int64_t sizes[kWalkAxes] = {};
  int64_t strides[kWalkViews][kWalkAxes] = {};  // in elements
};

/// Along axes of these sizes, with the strides of up to kWalkViews views. Nothing where there are
/// too many axes.
std::optional<StridedWalk> walk_together(const std::vector<int64_t>& sizes,
                                         const std::vector<std::vector<int64_t>>& strides);

}  // namespace tessera::cuda
