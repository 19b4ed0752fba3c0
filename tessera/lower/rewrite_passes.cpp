#include "tessera/lower/rewrite_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tessera/graph/transform.h"
#include "tessera/lower/chunks.h"
#include "tessera/lower/rewrite.h"
#include "tessera/plan/placement.h"

namespace tessera {

Graph replace_pairs(const Graph& graph, const Plan& plan,
                    const std::function<bool(const FusingPair& pair)>& belongs,
                    const std::function<ValueId(Graph& result, const std::vector<ValueId>& inputs,
                                                const FusingPair& pair)>& replace) {
  const std::vector<int> stages = stages_of_nodes(graph, plan);
  const auto pair_of = [&](NodeId id, NodeId reader) {
    const std::vector<ValueId>& inputs = graph.node(reader).inputs;
    const auto made = std::ranges::find(inputs, graph.node(id).output);
    return FusingPair{graph.node(id), graph.node(reader), stages[id],
                      static_cast<size_t>(made - inputs.begin())};
  };
  std::map<NodeId, std::pair<NodeId, std::vector<ValueId>>> taken_over;  // by reader
  return transform(graph,
                   [&](Graph& result, const Node& node,
                       const std::vector<ValueId>& inputs) -> std::optional<ValueId> {
                     const NodeId id = graph.value(node.output).producer;
                     if (const auto found = taken_over.find(id); found != taken_over.end()) {
                       auto& [left_out, all] = found->second;
                       const FusingPair pair = pair_of(left_out, id);
                       for (size_t i = 0; i < inputs.size(); ++i)
                         if (i != pair.input) all.push_back(inputs[i]);
                       return replace(result, all, pair);
                     }
                     const std::optional<NodeId> reader = fusing_reader(graph, id);
                     if (!reader || stages[*reader] != stages[id] || !belongs(pair_of(id, *reader)))
                       return std::nullopt;
                     taken_over[*reader] = {id, inputs};
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
