#pragma once
// Puts values behind each other along the channels: the skip connections of U-Nets and dense
// blocks. It moves no data between ranks where the values are cut alike, and is recomputed rather
// than kept, because each part lives on as the output of its producer.

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

/// All shapes must agree except for the channels. The result has the other axes of the first.
ValueId concat(Graph& graph, const std::vector<ValueId>& values, const std::string& name);

}  // namespace tessera
