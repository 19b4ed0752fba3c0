#include "tessera/lower/rewrite_passes.h"

#include <fmt/format.h>

#include <map>

#include "tessera/graph/transform.h"
#include "tessera/lower/chunks.h"
#include "tessera/lower/rewrite.h"
#include "tessera/plan/placement.h"

namespace tessera {

Graph replace_pairs(
    const Graph& graph, const Plan& plan,
    const std::function<bool(const FusingPair& pair)>& belongs,
    const std::function<ValueId(Graph& result, ValueId input, const FusingPair& pair)>& replace) {
  const std::vector<int> stages = stages_of_nodes(graph, plan);
  std::map<ValueId, ValueId> inputs_of_left_out;  // by the left-out node's old output
  return transform(graph,
                   [&](Graph& result, const Node& node,
                       const std::vector<ValueId>& inputs) -> std::optional<ValueId> {
                     const NodeId id = graph.value(node.output).producer;
                     if (!node.inputs.empty() && inputs_of_left_out.contains(node.inputs[0])) {
                       const Node& left_out = graph.node(graph.value(node.inputs[0]).producer);
                       return replace(result, inputs_of_left_out.at(left_out.output),
                                      {left_out, node, stages[id]});
                     }
                     const std::optional<NodeId> reader = fusing_reader(graph, id);
                     if (!reader || stages[*reader] != stages[id] ||
                         !belongs({node, graph.node(*reader), stages[id]}))
                       return std::nullopt;
                     inputs_of_left_out[node.output] = inputs[0];
                     return -1;
                   });
}

std::vector<Box> cells_on_stage(const Graph& graph, const Plan& plan, ValueId value, int stage) {
  return Placement::spatial_cells(Placement(graph, plan).layout_of(graph.type(value), stage));
}

std::string partial_name(const Node& node) {
  return fmt::format("{}{}", node.name, kPartialSuffix);
}

}  // namespace tessera
