#include "tessera/planner/balance_places.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/rewrite.h"

namespace tessera {
namespace {

/// The node that must share the stage of `node`, or `node` itself.
NodeId partner(const Graph& graph, NodeId id) { return fusing_reader(graph, id).value_or(id); }

/// Real elements that cross between the stages before and after each place.
std::vector<int64_t> crossing_elements(const Graph& graph, const std::vector<NodeId>& places) {
  std::vector<int64_t> steps(graph.nodes().size() + 2, 0);
  for (const Value& value : graph.values()) {
    if (value.producer < 0 || value.uses.empty()) continue;
    NodeId last_use = value.producer;
    for (const Use& use : value.uses) last_use = std::max(last_use, use.node);
    const int64_t elements = value_bytes(value.type, 1);
    steps[value.producer + 1] += elements;
    steps[last_use + 1] -= elements;
  }
  for (size_t i = 1; i < steps.size(); ++i) steps[i] += steps[i - 1];
  std::vector<int64_t> crossing;
  for (NodeId place : places) crossing.push_back(steps[place]);
  return crossing;
}

}  // namespace

std::vector<int> stages_in_turn(int num_stages, int num_segments) {
  std::vector<int> stages;
  for (int segment = 0; segment < num_segments; ++segment) stages.push_back(segment % num_stages);
  return stages;
}

std::vector<int> stages_in_v(int num_stages) {
  std::vector<int> stages;
  for (int segment = 0; segment < 2 * num_stages - 1; ++segment)
    stages.push_back(std::min(segment, 2 * num_stages - 2 - segment));
  return stages;
}

std::vector<int> stage_of_nodes(const StagedSegments& segments) {
  std::vector<int> stages(segments.cuts.back());
  for (size_t i = 0; i + 1 < segments.cuts.size(); ++i)
    std::fill(stages.begin() + segments.cuts[i], stages.begin() + segments.cuts[i + 1],
              segments.stage_of_segment[i]);
  return stages;
}

std::map<std::string, int> stage_by_name(const Graph& graph, const StagedSegments& segments) {
  const std::vector<int> stages = stage_of_nodes(segments);
  std::map<std::string, int> by_name;
  for (size_t id = 0; id < stages.size(); ++id) by_name[graph.nodes()[id].name] = stages[id];
  return by_name;
}

std::vector<NodeId> cut_places(const Graph& graph, int num_segments) {
  const NodeId num_nodes = static_cast<NodeId>(graph.nodes().size());
  std::vector<NodeId> all, places;
  NodeId together = -1;  // nodes up to this one share a stage
  for (NodeId id = 0; id < num_nodes; ++id) {
    all.push_back(id);
    if (id > together) places.push_back(id);
    together = std::max(together, partner(graph, id));
  }
  std::vector<NodeId>& chosen = static_cast<int>(places.size()) >= num_segments ? places : all;
  chosen.push_back(num_nodes);
  return chosen;
}

std::vector<NodeId> cheapest_places(const Graph& graph, const std::vector<NodeId>& places,
                                    int most) {
  const int size = static_cast<int>(places.size());
  if (size <= most) return places;
  const std::vector<int64_t> crossing = crossing_elements(graph, places);
  std::vector<NodeId> chosen{places.front()};
  const int64_t runs = most - 2, inner = size - 2;
  for (int64_t run = 0; run < runs; ++run) {
    const auto begin = crossing.begin() + 1 + run * inner / runs;
    const auto end = crossing.begin() + 1 + (run + 1) * inner / runs;
    chosen.push_back(places[std::min_element(begin, end) - crossing.begin()]);
  }
  chosen.push_back(places.back());
  return chosen;
}

int64_t value_bytes(const ValueType& type, int64_t real_bytes) {
  constexpr int64_t kIndexBytes = 8;
  return Box::whole(type.shape()).volume() *
         (type.element == Element::kIndex ? kIndexBytes : real_bytes);
}

}  // namespace tessera
