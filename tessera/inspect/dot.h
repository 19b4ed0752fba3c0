#pragma once
// A graph in the language of Graphviz: `dot -Tpdf graph.dot`. Names are escaped, edges carry the
// shape of what flows along them.

#include <string>

#include "tessera/inspect/drawing.h"

namespace tessera {

std::string to_dot(const Graph& graph, const DrawingOptions& options = {});

}  // namespace tessera
