#pragma once
// Joins values one after the other, along the channels (the skip connections of U-Nets and dense
// blocks) or along a spatial axis. Along the channels it moves no data between ranks where the
// values are cut alike. It is recomputed rather than kept, because each part lives on as the output
// of its producer.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// All shapes must agree except along `axis`. The result has the other axes of the first, and along
/// a spatial axis also its stride.
ValueId concat(Graph& graph, const std::vector<ValueId>& values, const std::string& name,
               int axis = 1);

}  // namespace tessera
