#include "tessera/lower/inference.h"

#include "tessera/ops/batch_norm.h"

namespace tessera {

Graph for_inference(const Graph& graph) {
  Graph result;
  std::vector<ValueId> ids(graph.values().size(), -1);
  for (const Parameter& parameter : graph.parameters()) result.add_parameter(parameter);
  for (ValueId input : graph.inputs())
    ids[input] = result.add_input(graph.value(input).name, graph.type(input));
  for (const Node& node : graph.nodes()) {
    if (node.op->kind() == "dropout") {
      ids[node.output] = ids[node.inputs[0]];
      continue;
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(ids[input]);
    const std::shared_ptr<const Op> running = with_running_statistics(*node.op);
    ids[node.output] = result.add_node(node.name, running ? running : node.op, inputs,
                                       node.parameters, node.buffers);
  }
  for (ValueId output : graph.outputs()) result.mark_output(ids[output]);
  return result;
}

}  // namespace tessera
