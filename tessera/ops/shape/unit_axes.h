#pragma once
// Axes of size 1 come and go, without a computation: volumes of one slice as images, images without
// channels as the input of a convolution.

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// Drops an axis of size 1, but never the batch. Without its channel axis a value is batch x space.
/// Spatial axes keep their spatial_index, and so their cuts.
ValueId squeeze(Graph& graph, ValueId x, const std::string& name, int axis);

/// Puts an axis of size 1 at `axis`, in [1, number of axes]. It is the channel axis where the value
/// has none and `axis` is 1, and otherwise a spatial one at stride 1; spatial axes, at most 3, are
/// then numbered again in their order.
ValueId unsqueeze(Graph& graph, ValueId x, const std::string& name, int axis);

}  // namespace tessera
