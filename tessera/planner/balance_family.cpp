#include "tessera/planner/balance_family.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

int index_of(const std::vector<NodeId>& places, NodeId place) {
  const auto found = std::lower_bound(places.begin(), places.end(), place);
  TESSERA_CHECK(found != places.end() && *found == place, "node {} is not a place to cut", place);
  return static_cast<int>(found - places.begin());
}

std::vector<int> indices_of(const std::vector<NodeId>& places, const std::vector<NodeId>& cuts) {
  std::vector<int> indices;
  for (NodeId cut : cuts) indices.push_back(index_of(places, cut));
  return indices;
}

std::vector<NodeId> places_at(const std::vector<NodeId>& places, const std::vector<int>& indices) {
  std::vector<NodeId> chosen;
  for (int index : indices) chosen.push_back(places[index]);
  return chosen;
}

/// Predictions are scaled by this until they are measured: one that is too large would hide a
/// better assignment for good, one that is too small costs a measurement.
constexpr double kBenefitOfTheDoubt = 0.94;

class ConsecutiveStages final : public AssignmentFamily {
 public:
  ConsecutiveStages(const std::vector<NodeId>& places, int num_stages, const SegmentCosts& costs)
      : places_(places), num_units_(static_cast<int>(places.size()) - 1), num_stages_(num_stages) {
    costs_.resize(num_stages_ * pairs());
    for (int end = 1; end <= num_units_; ++end)
      for (int begin = 0; begin < end; ++begin) {
        const std::vector<double> of_stages = costs(begin, end);
        for (int stage = 0; stage < num_stages_; ++stage)
          costs_[index(stage, begin, end)] = kBenefitOfTheDoubt * of_stages[stage];
      }
  }

  std::optional<StagedSegments> best_below(double limit) const override {
    if (num_units_ < num_stages_) return std::nullopt;
    const auto cost = [this](int stage, int begin, int end) { return value(stage, begin, end); };
    const std::vector<int> cuts = best_partition(num_units_, num_stages_, cost, no_tie_cost);
    for (int stage = 0; stage < num_stages_; ++stage)
      if (value(stage, cuts[stage], cuts[stage + 1]) >= limit) return std::nullopt;
    return StagedSegments{places_at(places_, cuts), stages_in_turn(num_stages_, num_stages_)};
  }

  void learn(const StagedSegments& member, const std::vector<double>& stage_costs) override {
    const std::vector<int> cuts = indices_of(places_, member.cuts);
    for (int stage = 0; stage < num_stages_; ++stage)
      costs_[index(stage, cuts[stage], cuts[stage + 1])] = stage_costs[stage];
  }

 private:
  size_t pairs() const { return static_cast<size_t>(num_units_) * (num_units_ + 1) / 2; }
  size_t index(size_t stage, size_t begin, size_t end) const {
    return stage * pairs() + end * (end - 1) / 2 + begin;
  }
  double value(int stage, int begin, int end) const { return costs_[index(stage, begin, end)]; }

  const std::vector<NodeId> places_;
  const int num_units_;
  const int num_stages_;
  std::vector<double> costs_;
};

/// What a family of rings is made of.
struct RingShape {
  int num_rings = 0;
  Center center = Center::kOnePart;
  std::vector<int> stage_of_segment;
  std::vector<std::vector<int>> stages_of_ring;
};

RingShape nested_shape(int num_stages) {
  RingShape shape{num_stages, Center::kOnePart, stages_in_v(num_stages), {}};
  for (int stage = 0; stage < num_stages; ++stage) shape.stages_of_ring.push_back({stage});
  return shape;
}

RingShape mirrored_shape(int num_stages) {
  RingShape shape{(num_stages + 1) / 2,
                  num_stages % 2 == 0 ? Center::kTwoParts : Center::kOnePart,
                  stages_in_turn(num_stages, num_stages),
                  {}};
  for (int ring = 0; ring < shape.num_rings; ++ring)
    shape.stages_of_ring.push_back({ring, num_stages - 1 - ring});
  return shape;
}

class Rings final : public AssignmentFamily {
 public:
  Rings(const std::vector<NodeId>& places, const RingShape& shape, const RingSearch& search)
      : places_(places), num_units_(static_cast<int>(places.size()) - 1), shape_(shape) {
    number_rings();
    for_each_ring([&](const Ring& ring) {
      const std::vector<double> costs = search.costs(ring);
      for (int i = 0; i < shape_.num_rings; ++i)
        costs_[index(i, ring)] = kBenefitOfTheDoubt * costs[i];
      return *std::min_element(costs.begin(), costs.end()) < search.limit;
    });
  }

  std::optional<StagedSegments> best_below(double limit) const override {
    const auto cost = [this](int i, const Ring& ring) { return costs_[index(i, ring)]; };
    const std::vector<int> cuts =
        best_nesting(num_units_, shape_.num_rings, shape_.center, cost, limit);
    if (cuts.empty()) return std::nullopt;
    return StagedSegments{places_at(places_, cuts), shape_.stage_of_segment};
  }

  void learn(const StagedSegments& member, const std::vector<double>& stage_costs) override {
    const std::vector<int> cuts = indices_of(places_, member.cuts);
    for (int i = 0; i < shape_.num_rings; ++i) {
      double& cost = costs_[index(i, ring_of(cuts, i))] = 0;
      for (int stage : shape_.stages_of_ring[i]) cost = std::max(cost, stage_costs[stage]);
    }
  }

 private:
  /// Rings with the same outside are neighbours: the one without a second part first, then the
  /// others by where the inside ends and begins.
  void number_rings() {
    first_of_outside_.assign((num_units_ + 1) * (num_units_ + 1), 0);
    size_t count = 0;
    for (int begin = 0; begin < num_units_; ++begin)
      for (int end = begin + 1; end <= num_units_; ++end) {
        first_of_outside_[begin * (num_units_ + 1) + end] = count;
        const size_t size = end - begin;
        count += 1 + size * (size - 1) / 2;
      }
    costs_.resize(count * shape_.num_rings, kUnbounded);
  }

  size_t index(int i, const Ring& ring) const {
    size_t inside = 0;
    if (!ring.is_one_part()) {
      const size_t begin = ring.inner_begin - ring.outer_begin;
      const size_t end = ring.inner_end - ring.outer_begin;
      inside = end * (end - 1) / 2 + begin;
    }
    const size_t first = first_of_outside_[ring.outer_begin * (num_units_ + 1) + ring.outer_end];
    return (first + inside) * shape_.num_rings + i;
  }

  /// `visit` says whether larger rings with the same outside are worth a visit.
  template <class Visit>
  void for_each_ring(Visit visit) const {
    const int least_inside = shape_.center == Center::kOnePart ? 1 : 0;
    for (int begin = 0; begin < num_units_; ++begin)
      for (int end = begin + 1; end <= num_units_; ++end) {
        if (shape_.center == Center::kOnePart) visit({begin, end, end, end});
        for (int inner_end = end - 1; inner_end > begin; --inner_end)
          for (int inner_begin = begin + 1; inner_begin <= inner_end - least_inside; ++inner_begin)
            if (!visit({begin, inner_begin, inner_end, end})) break;
      }
  }

  const std::vector<NodeId> places_;
  const int num_units_;
  const RingShape shape_;
  std::vector<size_t> first_of_outside_;  // by outer begin and end
  std::vector<double> costs_;
};

}  // namespace

std::unique_ptr<AssignmentFamily> consecutive_stages(const std::vector<NodeId>& places,
                                                     int num_stages, const SegmentCosts& costs) {
  return std::make_unique<ConsecutiveStages>(places, num_stages, costs);
}

std::unique_ptr<AssignmentFamily> nested_stages(const std::vector<NodeId>& places, int num_stages,
                                                const RingSearch& search) {
  return std::make_unique<Rings>(places, nested_shape(num_stages), search);
}

std::unique_ptr<AssignmentFamily> mirrored_stages(const std::vector<NodeId>& places, int num_stages,
                                                  const RingSearch& search) {
  return std::make_unique<Rings>(places, mirrored_shape(num_stages), search);
}

}  // namespace tessera
