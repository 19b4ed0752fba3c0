#include "tessera/planner/balance_sums.h"

#include <algorithm>

#include "tessera/planner/balance_costs.h"

namespace tessera {
namespace {

/// Where the units lie that count as layers, as indices into `places`.
std::vector<int> units_with_layers(const Graph& graph, const std::vector<NodeId>& places) {
  std::vector<int> units;
  for (int unit = 0; unit + 1 < static_cast<int>(places.size()); ++unit)
    for (NodeId node = places[unit]; node < places[unit + 1]; ++node)
      if (is_layer(graph.node(node)) && (units.empty() || units.back() != unit))
        units.push_back(unit);
  return units;
}

std::vector<int> all_units(const std::vector<NodeId>& places) {
  std::vector<int> units;
  for (int unit = 0; unit + 1 < static_cast<int>(places.size()); ++unit) units.push_back(unit);
  return units;
}

StagedSegments minimise(const Graph& graph, const Plan& plan, int num_segments,
                        const std::vector<NodeId>& places, const SegmentCost& cost) {
  const SegmentTable received = received_bytes(graph, places, /*real_bytes=*/4);
  const auto tie_cost = [&](int, int begin, int end) { return received.at(begin, end); };
  StagedSegments segments;
  const std::vector<int> cuts =
      best_partition(static_cast<int>(places.size()) - 1, num_segments, cost, tie_cost);
  for (int cut : cuts) segments.cuts.push_back(places[cut]);
  segments.stage_of_segment = stages_in_turn(plan.num_stages(), num_segments);
  return segments;
}

}  // namespace

StagedSegments balance_by_layers(const Graph& graph, const Plan& plan, int num_segments,
                                 const std::vector<NodeId>& places) {
  std::vector<int> layers = units_with_layers(graph, places);
  if (static_cast<int>(layers.size()) < num_segments) layers = all_units(places);
  const int each = static_cast<int>(layers.size()) / num_segments;
  const int left_over = static_cast<int>(layers.size()) % num_segments;
  StagedSegments segments;
  segments.cuts.push_back(0);
  for (int segment = 1; segment < num_segments; ++segment)
    segments.cuts.push_back(places[layers[segment * each + std::min(segment, left_over)]]);
  segments.cuts.push_back(places.back());
  segments.stage_of_segment = stages_in_turn(plan.num_stages(), num_segments);
  return segments;
}

StagedSegments balance_by_parameters(const Graph& graph, const Plan& plan, int num_segments,
                                     const std::vector<NodeId>& places) {
  const SegmentTable elements = parameter_elements(graph, places);
  return minimise(graph, plan, num_segments, places,
                  [&](int, int begin, int end) { return elements.at(begin, end); });
}

StagedSegments balance_by_time(const Graph& graph, const Plan& plan, int num_segments,
                               const std::vector<NodeId>& places, const CostModel& costs) {
  const std::vector<double> before = training_time_before(graph, places, costs);
  std::vector<double> ranks;
  for (int segment = 0; segment < num_segments; ++segment)
    ranks.push_back(plan.ranks_of_stage(segment % plan.num_stages()));
  return minimise(graph, plan, num_segments, places, [&](int segment, int begin, int end) {
    return (before[end] - before[begin]) / ranks[segment];
  });
}

}  // namespace tessera
