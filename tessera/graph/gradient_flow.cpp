#include "tessera/graph/gradient_flow.h"

#include "tessera/graph/step_numbers.h"

namespace tessera {

std::vector<bool> feeds_loss(const Graph& graph) {
  std::vector<bool> feeds(graph.values().size(), false);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op->is_loss() && step_numbers(*node->op).begin == 0) feeds[node->output] = true;
    if (!feeds[node->output]) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (node->op->differentiable(static_cast<int>(i))) feeds[node->inputs[i]] = true;
  }
  return feeds;
}

}  // namespace tessera
