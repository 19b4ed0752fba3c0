#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/pool/partial.h"

namespace tessera {

/// With fewer samples than ranks of a replica, gathering whole maps would leave ranks idle and send
/// the map; partial products send only their sums.
Graph linear_by_parts(const Graph& graph, const Plan& plan) {
  return replace_pairs(
      graph, plan,
      [&](const FusingPair& pair) {
        const int64_t samples =
            pair.node.types.inputs[0].batch() / (plan.data * plan.micro_batches);
        return pair.node.op->kind() == "flatten" && samples < plan.ranks_of_stage(pair.stage);
      },
      [&](Graph& result, const std::vector<ValueId>& inputs, const FusingPair& pair) {
        const Node& linear = pair.reader;
        const ValueId image = pair.node.inputs[0];
        Shape spatial = graph.type(image).shape();
        spatial.erase(spatial.begin(), spatial.begin() + 2);
        const ValueId parts = result.add_node(
            partial_name(linear),
            std::make_shared<PartialLinear>(cells_on_stage(graph, plan, image, pair.stage), spatial,
                                            linear.types.output.channels()),
            inputs, {linear.parameters[0]});
        const std::vector<ParameterId> bias(linear.parameters.begin() + 1, linear.parameters.end());
        return result.add_node(linear.name, std::make_shared<SumParts>(), {parts}, bias);
      });
}

}  // namespace tessera
