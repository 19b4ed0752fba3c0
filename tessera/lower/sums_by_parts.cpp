#include "tessera/graph/transform.h"
#include "tessera/lower/chunks.h"
#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/pool/partial.h"
#include "tessera/ops/pool/spatial_reduction.h"

namespace tessera {

Graph sums_by_parts(const Graph& graph, const Plan& plan) {
  const std::vector<int> stages = stages_of_nodes(graph, plan);
  return transform(graph,
                   [&](Graph& result, const Node& node,
                       const std::vector<ValueId>& inputs) -> std::optional<ValueId> {
                     const std::optional<double> scale = whole_space_scale(*node.op, node.types);
                     if (!scale) return std::nullopt;
                     const int stage = stages[graph.value(node.output).producer];
                     const ValueId parts = result.add_node(
                         partial_name(node),
                         std::make_shared<PartialSum>(
                             cells_on_stage(graph, plan, node.inputs[0], stage), *scale),
                         {inputs[0]});
                     const std::vector<Axis>& axes = node.types.output.axes;
                     const std::vector<Axis> kept(axes.begin() + 2, axes.end());
                     return result.add_node(node.name, std::make_shared<SumParts>(kept), {parts});
                   });
}

}  // namespace tessera
