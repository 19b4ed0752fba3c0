#include "tessera/planner/balance_memory.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/planner/balance_family.h"
#include "tessera/planner/balance_lowering.h"
#include "tessera/planner/balance_memory_model.h"
#include "tessera/planner/balance_search.h"
#include "tessera/planner/balance_sums.h"

namespace tessera {
namespace {

/// How much is looked at: nodes that a model walks, and nodes that are lowered. Seconds at most.
constexpr double kMostNodesWalked = 1e7;
constexpr double kMostNodesLowered = 1e6;

/// How many assignments are lowered. The model is good enough that few are needed.
int most_measurements(const Graph& graph, const Plan& plan) {
  const double nodes = static_cast<double>(graph.nodes().size()) * plan.num_ranks() *
                       static_cast<double>(plan.micro_batches);
  return static_cast<int>(std::clamp(kMostNodesLowered / nodes, 12.0, 200.0));
}

/// What a model walks grows with the readings of nodes: concatenations have many.
double count_readings(const Graph& graph) {
  double readings = 0;
  for (const Node& node : graph.nodes()) readings += static_cast<double>(node.inputs.size());
  return readings;
}

/// Consecutive stages have places² / 2 segments with a third of the network, on average.
int most_places(const Graph& graph) {
  return static_cast<int>(std::sqrt(2 * kMostNodesWalked / (count_readings(graph) / 3)));
}

/// There are places⁴ / 24 rings with two fifths of the network, on average.
int most_ring_places(const Graph& graph) {
  return static_cast<int>(std::pow(24 * kMostNodesWalked / (count_readings(graph) * 2 / 5), 0.25));
}

/// One search: its input, and what has been measured so far.
class MemoryBalance {
 public:
  MemoryBalance(const Graph& graph, const Plan& plan, const BalanceOptions& options,
                int num_segments, const std::vector<NodeId>& places)
      : graph_(graph),
        plan_(plan),
        options_(options),
        num_segments_(num_segments),
        places_(places),
        stage_bytes_(
            [this](const StagedSegments& assignment) { return bytes_or_none(assignment); }),
        measurements_(stage_bytes_, most_measurements(graph, plan)) {}

  StagedSegments run() {
    measurements_.measure(balance_by_layers(graph_, plan_, num_segments_, places_));
    const int third = measurements_.left() / 3, num_stages = plan_.num_stages();
    if (plan_.schedule == ScheduleKind::kInterleaved) {
      try_chunks();
    } else if (plan_.schedule == ScheduleKind::kGems && plan_.micro_batches > 1) {
      try_rings(stages_in_turn(num_stages, num_stages), mirrored_stages, third);
    } else {
      try_consecutive_stages(third);
      try_rings(stages_in_v(num_stages), nested_stages, third);
    }
    shift_cuts(places_, &measurements_);
    if (measurements_.best_largest() == kUnbounded)
      simulated_stage_bytes(graph_, plan_, measurements_.best(), options_);  // says what is wrong
    return measurements_.best();
  }

 private:
  /// An interleaved schedule does not take every assignment.
  std::vector<double> bytes_or_none(const StagedSegments& assignment) const {
    if (plan_.schedule != ScheduleKind::kInterleaved)
      return simulated_stage_bytes(graph_, plan_, assignment, options_);
    try {
      return simulated_stage_bytes(graph_, plan_, assignment, options_);
    } catch (const InvalidInput&) {
      return std::vector<double>(plan_.num_stages(), kUnbounded);
    }
  }

  std::vector<NodeId> places_for_model(int most) const {
    return cheapest_places(graph_, places_, std::max(most, num_segments_ + 1));
  }

  void try_consecutive_stages(int most) {
    const int num_stages = plan_.num_stages();
    const std::vector<NodeId> places = places_for_model(most_places(graph_));
    MemoryModel model(graph_, plan_, options_, places, stages_in_turn(num_stages, num_stages));
    const auto family = consecutive_stages(places, num_stages, [&](int begin, int end) {
      return model.bytes({{begin, end}});
    });
    explore(family.get(), most, &measurements_);
  }

  void try_rings(const std::vector<int>& stage_of_segment, decltype(nested_stages)* family_of,
                 int most) {
    if (places_.size() <= stage_of_segment.size()) return;
    const std::vector<NodeId> places = places_for_model(most_ring_places(graph_));
    MemoryModel model(graph_, plan_, options_, places, stage_of_segment);
    const auto costs = [&](const Ring& ring) { return model.bytes(segments_of(ring)); };
    const auto family = family_of(places, plan_.num_stages(), {costs, ring_limit()});
    explore(family.get(), most, &measurements_);
  }

  static Segments segments_of(const Ring& ring) {
    if (ring.is_one_part()) return {{ring.outer_begin, ring.outer_end}};
    return {{ring.outer_begin, ring.inner_begin}, {ring.inner_end, ring.outer_end}};
  }

  /// Rings that cost more than what was found already are of no use, even where the model is wrong
  /// by a fifth.
  double ring_limit() const { return 1.2 * measurements_.best_largest(); }

  /// Chunks of an interleaved schedule: the largest chunk stands for the largest stage.
  void try_chunks() {
    const std::vector<NodeId> places = places_for_model(most_places(graph_));
    MemoryModel model(graph_, plan_, options_, places,
                      stages_in_turn(plan_.num_stages(), num_segments_));
    std::optional<StagedSegments> chunks =
        consecutive_stages(places, num_segments_, [&](int begin, int end) {
          return model.bytes({{begin, end}});
        })->best_below(kUnbounded);
    if (!chunks) return;
    chunks->stage_of_segment = stages_in_turn(plan_.num_stages(), num_segments_);
    measurements_.measure(*chunks);
  }

  const Graph& graph_;
  const Plan& plan_;
  const BalanceOptions& options_;
  const int num_segments_;
  const std::vector<NodeId>& places_;
  const StageCosts stage_bytes_;
  Measurements measurements_;
};

}  // namespace

StagedSegments balance_by_memory(const Graph& graph, const Plan& plan,
                                 const BalanceOptions& options, int num_segments,
                                 const std::vector<NodeId>& places) {
  if (num_segments == 1) return {{0, places.back()}, {0}};
  return MemoryBalance(graph, plan, options, num_segments, places).run();
}

}  // namespace tessera
