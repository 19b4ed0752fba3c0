#include "tessera/planner/balance_costs.h"

#include "tessera/lower/task_costs.h"
#include "tessera/planner/balance_places.h"

namespace tessera {
namespace {

/// Fills a table whose entries grow node by node: `added(begin, node)` is what a node adds to a
/// segment that begins at place `begin`.
template <class Added>
SegmentTable accumulate(const std::vector<NodeId>& places, Added added) {
  const int num_places = static_cast<int>(places.size());
  SegmentTable table(num_places);
  for (int begin = 0; begin + 1 < num_places; ++begin) {
    double total = 0;
    for (int end = begin + 1; end < num_places; ++end) {
      for (NodeId node = places[end - 1]; node < places[end]; ++node)
        total += added(places[begin], node);
      table.at(begin, end) = total;
    }
  }
  return table;
}

/// A thing that a node uses, and the last node before it that uses it, too (-1: none).
struct Usage {
  int id = -1;
  NodeId last_before = -1;
};

/// What each node uses, each thing once.
template <class IdsOf>
std::vector<std::vector<Usage>> usages(const Graph& graph, size_t num_things, IdsOf ids_of) {
  std::vector<NodeId> last(num_things, -1);
  std::vector<std::vector<Usage>> all(graph.nodes().size());
  for (NodeId node = 0; node < static_cast<NodeId>(all.size()); ++node) {
    const std::vector<int>& ids = ids_of(graph.node(node));
    for (int id : ids) {
      if (last[id] == node) continue;
      all[node].push_back({id, last[id]});
      last[id] = node;
    }
  }
  return all;
}

}  // namespace

SegmentTable parameter_elements(const Graph& graph, const std::vector<NodeId>& places) {
  const auto used =
      usages(graph, graph.parameters().size(),
             [](const Node& node) -> const std::vector<ParameterId>& { return node.parameters; });
  return accumulate(places, [&](NodeId begin, NodeId node) {
    double elements = 0;
    for (const Usage& usage : used[node])
      if (usage.last_before < begin)
        elements += static_cast<double>(graph.parameters()[usage.id].numel());
    return elements;
  });
}

SegmentTable received_bytes(const Graph& graph, const std::vector<NodeId>& places,
                            int64_t real_bytes) {
  const auto used =
      usages(graph, graph.values().size(),
             [](const Node& node) -> const std::vector<ValueId>& { return node.inputs; });
  return accumulate(places, [&](NodeId begin, NodeId node) {
    double bytes = 0;
    for (const Usage& usage : used[node]) {
      const Value& value = graph.value(usage.id);
      const bool comes_from_before = value.producer >= 0 && value.producer < begin;
      if (comes_from_before && usage.last_before < begin)
        bytes += static_cast<double>(value_bytes(value.type, real_bytes));
    }
    return bytes;
  });
}

std::vector<double> training_time_before(const Graph& graph, const std::vector<NodeId>& places,
                                         const CostModel& costs) {
  const BackwardValues backward = analyse_backward(graph, {.step = StepKind::kGradient});
  std::vector<double> before{0};
  for (size_t i = 0; i + 1 < places.size(); ++i) {
    TaskCosts total;
    for (NodeId id = places[i]; id < places[i + 1]; ++id)
      total +=
          kernel_costs(costs, graph, id, backward, Box::whole(graph.node(id).types.output.shape()));
    before.push_back(before.back() + total.forward + total.backward + total.weight);
  }
  return before;
}

bool is_layer(const Node& node) {
  const std::string kind = node.op->kind();
  return kind == "convolution" || kind == "transposed_convolution" || kind == "linear";
}

}  // namespace tessera
