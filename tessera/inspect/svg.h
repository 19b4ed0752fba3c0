#pragma once
// A graph as a picture that any browser shows: boxes in the colour of their family with name, kind,
// settings and output shape, a legend, and the full text of every box when the mouse rests on it.
// Where things stand is decided in graph_layout.h.
//
// Example:
//   const std::string text = to_svg(graph, {.title = "unet2d"});

#include <string>

#include "tessera/inspect/drawing.h"

namespace tessera {

std::string to_svg(const Graph& graph, const DrawingOptions& options = {});

}  // namespace tessera
