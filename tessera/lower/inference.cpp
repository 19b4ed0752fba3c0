#include "tessera/lower/inference.h"

#include "tessera/graph/transform.h"
#include "tessera/ops/norm/batch_norm.h"

namespace tessera {

Graph for_inference(const Graph& graph) {
  return transform(graph, [](Graph& result, const Node& node, const std::vector<ValueId>& inputs) {
    if (node.op->kind() == "dropout") return std::optional(inputs[0]);
    const std::shared_ptr<const Op> running = with_running_statistics(*node.op);
    if (!running) return std::optional<ValueId>();
    return std::optional(
        result.add_node(node.name, running, inputs, node.parameters, node.buffers));
  });
}

std::vector<std::string> norms_in_eval_mode(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    const std::shared_ptr<const Op> running = with_running_statistics(*node.op);
    if (running && running->settings() == node.op->settings()) names.push_back(node.name);
  }
  return names;
}

}  // namespace tessera
