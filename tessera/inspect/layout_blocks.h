#pragma once
// What is laid out as one: a stack of operators, or an input of the graph; and the row of each.

#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/inspect/graph_layout.h"

namespace tessera {

struct Block {
  std::vector<NodeId> nodes;  // from top to bottom; empty: an input of the graph
  ValueId output = -1;        // what leaves it: of its last node, or the input
  int row = 0;
  Rect rect;
};

/// What one block reads of another.
struct BlockEdge {
  int from = 0;  // position in Blocks::list
  int to = 0;
  Use use;  // by the first node of `to`
};

struct Blocks {
  std::vector<Block> list;  // a block comes after those that it reads
  std::vector<BlockEdge> edges;
  std::vector<std::vector<int>> rows;      // positions in `list`
  std::vector<std::vector<int>> edges_to;  // by block: positions in `edges`
};

/// Forms the blocks and gives each its row; rectangles are not set yet.
Blocks form_blocks(const Graph& graph);

/// Whether the node stands in the stack of the operator before it.
bool is_stacked(const Graph& graph, const Node& node);

}  // namespace tessera
