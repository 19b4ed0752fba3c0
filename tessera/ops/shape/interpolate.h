#pragma once
// Interpolation of one to three spatial axes to another size: nearest neighbour, linear (bilinear,
// trilinear) and, for two axes, cubic. Each output finds its sources from its global index, rounded
// as PyTorch rounds, so the pieces of a cut image fit together. It is recomputed rather than kept:
// an enlarged image is the larger of the two.
//
// Example:
//   ValueId y = interpolate(graph, x, "up1",
//                           {.mode = InterpolationMode::kLinear, .scale = {2, 2}});

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/geometry/window.h"
#include "tessera/graph/graph.h"

namespace tessera {

/// The arguments of torch.nn.functional.interpolate. Either size or scale is given, with one entry
/// per spatial axis or one for all of them.
struct InterpolateOptions {
  InterpolationMode mode = InterpolationMode::kNearest;
  Corners corners = Corners::kNotAligned;  // kLinear and kCubic only
  std::vector<int64_t> size = {};
  std::vector<double> scale = {};
  bool recompute_scale_factor = false;  // coordinates by the ratio of the sizes, not by `scale`
};

ValueId interpolate(Graph& graph, ValueId x, const std::string& name,
                    const InterpolateOptions& options);

}  // namespace tessera
