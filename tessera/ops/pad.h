#pragma once
// Zeros around an image, or a crop where the number is negative; each side of each spatial axis has
// its own number. A piece that lies wholly in the padding needs no input.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// One entry per spatial axis. A crop leaves at least one pixel of the input.
struct PadOptions {
  std::vector<int64_t> low;
  std::vector<int64_t> high;
};

ValueId pad(Graph& graph, ValueId x, const std::string& name, const PadOptions& options);

}  // namespace tessera
