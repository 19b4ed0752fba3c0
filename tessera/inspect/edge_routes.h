#pragma once
// The lines between blocks that have their places. No line crosses a box: those to the next row
// stay in the gap between the rows, and one that passes rows runs down a lane where all of them are
// free, straight below its source if it can, else at the left side. All long lines of one value
// share a lane; lines of different values keep their distance.

#include <vector>

#include "tessera/inspect/graph_layout.h"
#include "tessera/inspect/layout_blocks.h"

namespace tessera {

/// In the order of blocks.edges.
std::vector<EdgePath> route_edges(const Blocks& blocks, const LayoutSizes& sizes);

}  // namespace tessera
