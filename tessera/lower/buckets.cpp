#include "tessera/lower/buckets.h"

#include <algorithm>

namespace tessera {

std::vector<BucketPlan> plan_buckets(const Graph& graph, int64_t max_elements) {
  // Backward visits nodes from the last to the first: a gradient is complete after the first node
  // that uses the parameter, and one that nobody uses from the start.
  const NodeId last = static_cast<NodeId>(graph.nodes().size()) - 1;
  std::vector<NodeId> first_use(graph.parameters().size(), last);
  for (NodeId node = last; node >= 0; --node)
    for (ParameterId parameter : graph.node(node).parameters) first_use[parameter] = node;
  std::vector<ParameterId> order;
  for (size_t id = 0; id < first_use.size(); ++id)
    if (graph.parameters()[id].role == ParameterRole::kTrainable)
      order.push_back(static_cast<ParameterId>(id));
  std::stable_sort(order.begin(), order.end(),
                   [&](ParameterId a, ParameterId b) { return first_use[a] > first_use[b]; });

  std::vector<BucketPlan> buckets;
  int64_t filled = 0;
  for (ParameterId id : order) {
    const int64_t numel = graph.parameters()[id].numel();
    if (buckets.empty() || filled + numel > max_elements) {
      buckets.emplace_back();
      filled = 0;
    }
    buckets.back().parameters.push_back(id);
    buckets.back().ready_after = first_use[id];
    filled += numel;
  }
  return buckets;
}

}  // namespace tessera
