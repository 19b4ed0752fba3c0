#include "tessera/lower/early.h"

namespace tessera {
namespace {

/// Per value: no weight or statistic has a part in it.
std::vector<bool> values_without_weights(const Graph& graph) {
  std::vector<bool> plain(graph.values().size(), true);
  for (const Node& node : graph.nodes()) {
    bool is_plain = node.parameters.empty() && node.buffers.empty() && !node.op->is_loss();
    for (ValueId input : node.inputs) is_plain = is_plain && plain[input];
    plain[node.output] = is_plain;
  }
  return plain;
}

void mark_with_ancestors(const Graph& graph, ValueId value, EarlyPart* early) {
  if (early->values[value]) return;
  early->values[value] = true;
  const NodeId producer = graph.value(value).producer;
  if (producer < 0) return;
  early->nodes[producer] = true;
  for (ValueId input : graph.node(producer).inputs) mark_with_ancestors(graph, input, early);
}

}  // namespace

EarlyPart find_early_part(const Graph& graph, int64_t micro_batches) {
  EarlyPart early;
  early.values.assign(graph.values().size(), false);
  early.nodes.assign(graph.nodes().size(), false);
  early.losses.assign(graph.nodes().size(), false);
  if (micro_batches == 1) return early;
  const std::vector<bool> plain = values_without_weights(graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (!node.op->is_loss() || node.op->forward_statistics(node.types).per_piece == 0) continue;
    early.losses[id] = true;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.op->statistics_read(static_cast<int>(i)) && !plain[node.inputs[i]])
        early.losses[id] = false;
    if (!early.losses[id]) early.late_loss = id;
    for (size_t i = 0; early.losses[id] && i < node.inputs.size(); ++i)
      if (node.op->statistics_read(static_cast<int>(i)))
        mark_with_ancestors(graph, node.inputs[i], &early);
  }
  return early;
}

}  // namespace tessera
