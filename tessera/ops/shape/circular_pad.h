#pragma once
// Circular padding along one axis. A border part shows pixels of the image's other end; one box
// that held both ends would be the whole axis. So the operator reads its input three times, and
// each reading has its own small box:
//
//     input 0: the high end      input 1: the image      input 2: the low end
//                [y z]             [a b ... y z]             [a b]

#include "tessera/graph/graph.h"

namespace tessera {

/// `low` and `high` lie in [0, size of the axis].
ValueId circular_pad(Graph& graph, ValueId x, const std::string& name, int axis, int64_t low,
                     int64_t high);

}  // namespace tessera
