#include "tessera/lower/buckets.h"

#include <algorithm>
#include <map>

namespace tessera {
namespace {

/// Not worth a reduction of its own: a MiB of float32.
constexpr int64_t kSmallBucket = 262'144;

/// Backward visits nodes from the last to the first: a gradient is complete after the first node
/// that uses the parameter, and one that nobody uses from the start.
std::vector<ParameterId> in_order_of_completion(const Graph& graph) {
  const NodeId last = static_cast<NodeId>(graph.nodes().size()) - 1;
  std::vector<NodeId> first_use(graph.parameters().size(), last);
  for (NodeId node = last; node >= 0; --node)
    if (graph.node(node).op->trains_parameters())
      for (ParameterId parameter : graph.node(node).parameters) first_use[parameter] = node;
  for (const Derivation& derivation : graph.derivations())
    for (ParameterId source : derivation.sources)
      first_use[source] = std::min(first_use[source], first_use[derivation.result]);
  std::vector<ParameterId> order;
  for (size_t id = 0; id < first_use.size(); ++id)
    if (graph.parameters()[id].role == ParameterRole::kTrainable)
      order.push_back(static_cast<ParameterId>(id));
  std::stable_sort(order.begin(), order.end(),
                   [&](ParameterId a, ParameterId b) { return first_use[a] > first_use[b]; });
  return order;
}

}  // namespace

std::vector<Members> parameter_holders(const PlacedGraph& placed) {
  std::vector<Members> holders(placed.graph.parameters().size());
  for (NodeId id = 0; id < static_cast<NodeId>(placed.graph.nodes().size()); ++id) {
    const Node& node = placed.graph.node(id);
    const Members ranks = placed.all_ranks_of_node(id);
    for (const auto* used : {&node.parameters, &node.buffers})
      for (ParameterId parameter : *used)
        holders[parameter].insert(holders[parameter].end(), ranks.begin(), ranks.end());
  }
  for (const Derivation& derivation : placed.graph.derivations())
    for (ParameterId source : derivation.sources)
      holders[source].insert(holders[source].end(), holders[derivation.result].begin(),
                             holders[derivation.result].end());
  for (Members& ranks : holders) {
    if (ranks.empty()) ranks = placed.plan.stage_ranks(0);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  }
  return holders;
}

std::vector<BucketPlan> plan_buckets(const Graph& graph, const std::vector<Members>& holders,
                                     int64_t max_elements) {
  struct Open {
    int bucket = -1;
    int64_t filled = 0;
    int64_t limit = 0;
    int64_t taken = 0;    // elements of these holders that are in buckets
    int64_t to_come = 0;  // ... and that are in none yet
  };
  const std::vector<ParameterId> order = in_order_of_completion(graph);
  std::map<Members, Open> open;  // the last bucket of each set of holders
  for (ParameterId id : order) open[holders[id]].to_come += graph.parameters()[id].numel();
  std::vector<BucketPlan> buckets;
  for (ParameterId id : order) {
    const int64_t numel = graph.parameters()[id].numel();
    Open& last = open.at(holders[id]);
    if (last.bucket < 0 || last.filled + numel > last.limit) {
      last.bucket = static_cast<int>(buckets.size());
      last.filled = 0;
      last.limit =
          std::min(std::max(std::min(last.to_come / 4, last.taken), kSmallBucket), max_elements);
      buckets.push_back({{}, holders[id]});
    }
    buckets[last.bucket].parameters.push_back(id);
    last.filled += numel;
    last.taken += numel;
    last.to_come -= numel;
  }
  return buckets;
}

}  // namespace tessera
