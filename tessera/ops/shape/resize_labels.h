#pragma once
// Class labels at another size, for losses on coarser outputs (deep supervision): each label is
// that of the nearest pixel, by the rule of interpolate(mode="nearest") with a size. Labels have no
// gradient.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// Labels batch x space to batch x `size`, which has one entry for each of the 1 to 3 spatial axes.
ValueId resize_labels(Graph& graph, ValueId labels, const std::string& name,
                      const std::vector<int64_t>& size);

}  // namespace tessera
