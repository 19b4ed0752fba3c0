#pragma once
// Where the parts of a graph are drawn, without any drawing: pure geometry, so that it can be
// tested for overlaps. Time runs from top to bottom: a row holds what is equally far, along the
// longest path, from the inputs. Levels of resolution run from left to right, so that a U-Net shows
// its shape, lying on its side:
//
//   enc1
//    │  ╲ pool1
//    │     enc2
//   skip    │  ╲ pool2
//    │     skip   bottleneck
//    │      │  ╱ up2
//    │     dec2
//    │  ╱ up1
//   dec1
//
// Operators that change values one by one (norms, activations) are stacked right below the one that
// they follow, when nobody else reads it. An edge that passes rows runs down a lane beside them.

#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct Point {
  double x = 0;
  double y = 0;
};

struct Rect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double center_x() const { return x + width / 2; }
  bool overlaps(const Rect& other) const {
    return x < other.right() && other.x < right() && y < other.bottom() && other.y < bottom();
  }
};

struct EdgePath {
  ValueId value = -1;
  Use use;
  bool is_skip = false;  // it passes rows
  /// A chain of cubic Bézier curves: the start, then three points for each.
  std::vector<Point> points;
};

struct LayoutSizes {
  double box_width = 240;
  double box_height = 38;
  double light_height = 20;  // of an operator in a stack
  double stack_gap = 2;
  double row_gap = 34;
  double column_gap = 36;
  double indent = 150;  // per halving of the resolution
  double lane_gap = 9;
};

struct GraphLayout {
  std::vector<Rect> nodes;      // by NodeId
  std::vector<bool> is_light;   // by NodeId: stacked below another
  std::vector<Rect> inputs;     // in the order of graph.inputs()
  std::vector<EdgePath> edges;  // all but those inside stacks
  double width = 0;
  double height = 0;
};

GraphLayout layout_graph(const Graph& graph, const LayoutSizes& sizes = {});

}  // namespace tessera
