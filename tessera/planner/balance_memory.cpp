#include "tessera/planner/balance_memory.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/planner/balance_costs.h"
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
    measurements_.measure(even_segments(num_segments_));
    const int third = measurements_.left() / 3;
    if (plan_.schedule == ScheduleKind::kInterleaved) {
      try_chunks();
    } else if (plan_.schedule == ScheduleKind::kGems) {
      try_mirrored_stages(third);
    } else {
      try_consecutive_stages(third);
      try_nested_stages(third);
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

  StagedSegments even_segments(int num_segments) const {
    return balance_by_layers(graph_, plan_, num_segments, places_);
  }

  /// What a stage holds also depends on where the others are, which is when they send to it: each
  /// round expects them where the last one proposed them.
  void try_consecutive_stages(int most) {
    const int num_stages = plan_.num_stages();
    const std::vector<NodeId> places = places_for_model(most_places(graph_));
    MemoryModel model(graph_, plan_, options_, places, single_chunks(num_stages, num_stages));
    constexpr int kRounds = 4;
    std::optional<StagedSegments> last = even_segments(num_stages);
    for (int round = 0; round < kRounds && last; ++round) {
      model.expect(last->cuts);
      const auto family = consecutive_stages(places, num_stages, [&](int begin, int end) {
        return model.bytes({{{begin, end}}});
      });
      last = explore(family.get(), std::max(1, most / kRounds), &measurements_);
    }
  }

  void try_nested_stages(int most) {
    const int num_stages = plan_.num_stages(), num_parts = 2 * num_stages - 1;
    if (static_cast<int>(places_.size()) <= num_parts) return;
    const std::vector<NodeId> places = places_for_model(most_ring_places(graph_));
    MemoryModel model(graph_, plan_, options_, places, ring_chunks(num_stages));
    model.expect(even_segments(num_parts).cuts);
    const auto costs = [&](const Ring& ring) { return model.bytes({segments_of(ring)}); };
    const auto family = nested_stages(places, num_stages, {costs, ring_limit()});
    explore(family.get(), most, &measurements_);
  }

  void try_mirrored_stages(int most) {
    const int num_stages = plan_.num_stages();
    const std::vector<NodeId> places = places_for_model(most_ring_places(graph_));
    MemoryModel model(graph_, plan_, options_, places, mirrored_chunks(num_stages));
    model.expect(even_segments(num_stages).cuts);
    const auto costs = [&](const Ring& ring) {
      std::vector<Segments> tracks;
      for (const auto& segment : segments_of(ring)) tracks.push_back({segment});
      return model.bytes(tracks);
    };
    const auto family = mirrored_stages(places, num_stages, {costs, ring_limit()});
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
                      single_chunks(plan_.num_stages(), num_segments_));
    model.expect(even_segments(num_segments_).cuts);
    const int num_places = static_cast<int>(places.size());
    std::vector<SegmentTable> tables(num_segments_, SegmentTable(num_places));
    for (int end = 1; end < num_places; ++end)
      for (int begin = 0; begin < end; ++begin) {
        const std::vector<double> bytes = model.bytes({{{begin, end}}});
        for (int chunk = 0; chunk < num_segments_; ++chunk)
          tables[chunk].at(begin, end) = bytes[chunk];
      }
    const auto cost = [&](int chunk, int begin, int end) { return tables[chunk].at(begin, end); };
    StagedSegments chunks;
    for (int cut : best_partition(num_places - 1, num_segments_, cost, no_tie_cost))
      chunks.cuts.push_back(places[cut]);
    chunks.stage_of_segment = stages_in_turn(plan_.num_stages(), num_segments_);
    measurements_.measure(chunks);
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
