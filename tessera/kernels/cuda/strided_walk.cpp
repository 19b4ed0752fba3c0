#include "tessera/kernels/cuda/strided_walk.h"

#include <algorithm>
#include <cstddef>

namespace tessera::cuda {
namespace {

struct WalkedAxis {
  int64_t size;
  int64_t strides[kWalkViews] = {};

  bool takes(const WalkedAxis& inner) const {
    for (int view = 0; view < kWalkViews; ++view)
      if (strides[view] != inner.size * inner.strides[view]) return false;
    return true;
  }
};

std::vector<WalkedAxis> joined(const std::vector<WalkedAxis>& axes) {
  std::vector<WalkedAxis> result;
  for (WalkedAxis axis : axes) {
    if (!result.empty() && result.back().takes(axis)) {
      axis.size *= result.back().size;
      result.pop_back();
    }
    result.push_back(axis);
  }
  return result;
}

}  // namespace

std::optional<StridedWalk> walk_together(const std::vector<int64_t>& sizes,
                                         const std::vector<std::vector<int64_t>>& strides) {
  std::vector<WalkedAxis> axes;
  StridedWalk walk;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    walk.count *= sizes[axis];
    if (sizes[axis] == 1) continue;
    WalkedAxis next{sizes[axis]};
    for (size_t view = 0; view < strides.size(); ++view) next.strides[view] = strides[view][axis];
    axes.push_back(next);
  }
  std::stable_sort(axes.begin(), axes.end(), [](const WalkedAxis& a, const WalkedAxis& b) {
    return a.strides[0] > b.strides[0];
  });
  axes = joined(axes);
  if (std::ssize(axes) > kWalkAxes) return std::nullopt;
  for (const WalkedAxis& axis : axes) {
    walk.sizes[walk.num_axes] = axis.size;
    for (int view = 0; view < kWalkViews; ++view)
      walk.strides[view][walk.num_axes] = axis.strides[view];
    ++walk.num_axes;
  }
  return walk;
}

}  // namespace tessera::cuda
