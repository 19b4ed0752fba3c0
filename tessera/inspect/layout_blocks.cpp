#include "tessera/inspect/layout_blocks.h"

#include <algorithm>

#include "tessera/inspect/drawing.h"

namespace tessera {
namespace {

/// The blocks, without rows, and the block of every value that leaves one.
std::vector<int> add_blocks(const Graph& graph, Blocks* blocks) {
  std::vector<int> block_of(graph.values().size(), -1);
  for (ValueId input : graph.inputs()) {
    block_of[input] = static_cast<int>(blocks->list.size());
    blocks->list.push_back({{}, input, 0, {}});
  }
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (is_stacked(graph, node)) {
      block_of[node.output] = block_of[node.inputs[0]];
    } else {
      block_of[node.output] = static_cast<int>(blocks->list.size());
      blocks->list.emplace_back();
    }
    Block& block = blocks->list[block_of[node.output]];
    block.nodes.push_back(static_cast<NodeId>(id));
    block.output = node.output;
  }
  return block_of;
}

void add_edges(const Graph& graph, const std::vector<int>& block_of, Blocks* blocks) {
  blocks->edges_to.resize(blocks->list.size());
  for (size_t to = 0; to < blocks->list.size(); ++to) {
    if (blocks->list[to].nodes.empty()) continue;
    const NodeId first = blocks->list[to].nodes[0];
    const std::vector<ValueId>& inputs = graph.node(first).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      blocks->edges_to[to].push_back(static_cast<int>(blocks->edges.size()));
      blocks->edges.push_back(
          {block_of[inputs[i]], static_cast<int>(to), {first, static_cast<int>(i)}});
    }
  }
}

/// One row below the lowest of what it reads. An input of the graph stands right above its first
/// reader: the labels beside the logits, not beside the image.
void choose_rows(Blocks* blocks) {
  for (const BlockEdge& edge : blocks->edges) {  // in the order of their readers
    Block& to = blocks->list[edge.to];
    to.row = std::max(to.row, blocks->list[edge.from].row + 1);
  }
  std::vector<int> first_reader(blocks->list.size(), -1);
  for (const BlockEdge& edge : blocks->edges) {
    int& first = first_reader[edge.from];
    const int row = blocks->list[edge.to].row;
    first = first < 0 ? row : std::min(first, row);
  }
  for (size_t i = 0; i < blocks->list.size(); ++i) {
    Block& block = blocks->list[i];
    if (block.nodes.empty() && first_reader[i] > 0) block.row = first_reader[i] - 1;
    if (static_cast<int>(blocks->rows.size()) <= block.row) blocks->rows.resize(block.row + 1);
    blocks->rows[block.row].push_back(static_cast<int>(i));
  }
}

}  // namespace

bool is_stacked(const Graph& graph, const Node& node) {
  if (!family_of(*node.op).is_light || node.inputs.size() != 1) return false;
  const Value& input = graph.value(node.inputs[0]);
  return input.producer >= 0 && input.uses.size() == 1 &&
         input.type.shape() == node.types.output.shape();
}

Blocks form_blocks(const Graph& graph) {
  Blocks blocks;
  const std::vector<int> block_of = add_blocks(graph, &blocks);
  add_edges(graph, block_of, &blocks);
  choose_rows(&blocks);
  return blocks;
}

}  // namespace tessera
