#include "tessera/planner/balance_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Shifts neighbouring cuts by some places; false where a segment would be left empty.
bool shift(const std::vector<NodeId>& places, int first_cut, int num_cuts, int steps,
           StagedSegments* assignment) {
  std::vector<NodeId>& cuts = assignment->cuts;
  const int end_cut = first_cut + num_cuts, last = static_cast<int>(cuts.size()) - 1;
  if (end_cut > last) return false;
  for (int cut = first_cut; cut < end_cut; ++cut) {
    const auto here = std::lower_bound(places.begin(), places.end(), cuts[cut]);
    const auto target = here - places.begin() + steps;
    if (target < 0 || target >= static_cast<int64_t>(places.size())) return false;
    cuts[cut] = places[target];
  }
  return cuts[first_cut - 1] < cuts[first_cut] && cuts[end_cut - 1] < cuts[end_cut];
}

/// The cuts at either end of a stage's segments.
std::vector<int> cuts_of_stage(const StagedSegments& assignment, int stage) {
  std::vector<int> cuts;
  const int num_segments = static_cast<int>(assignment.stage_of_segment.size());
  for (int cut = 1; cut < num_segments; ++cut)
    if (assignment.stage_of_segment[cut - 1] == stage || assignment.stage_of_segment[cut] == stage)
      cuts.push_back(cut);
  return cuts;
}

std::vector<int> largest_first(const std::vector<double>& costs) {
  std::vector<int> stages(costs.size());
  std::iota(stages.begin(), stages.end(), 0);
  std::stable_sort(stages.begin(), stages.end(), [&](int a, int b) { return costs[a] > costs[b]; });
  return stages;
}

/// Tries the shifts of one stage's cuts, the small ones first; true when one made the best better.
/// Where several cuts are shifted, the neighbours pass on what they are given.
bool shift_once(const std::vector<NodeId>& places, int stage, int num_cuts,
                Measurements* measurements) {
  const StagedSegments start = measurements->best();
  for (int steps : {1, -1, 2, -2, 4, -4})
    for (int cut : cuts_of_stage(start, stage)) {
      StagedSegments shifted = start;
      const int first_cut = steps > 0 ? cut : std::max(1, cut - num_cuts + 1);
      if (!shift(places, first_cut, num_cuts, steps, &shifted) || measurements->knows(shifted))
        continue;
      if (!measurements->measure(shifted)) return false;
      if (measurements->best().cuts == shifted.cuts) return true;
    }
  return false;
}

}  // namespace

bool is_better(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end(), std::greater<>());
  std::sort(b.begin(), b.end(), std::greater<>());
  return a < b;
}

const std::vector<double>* Measurements::measure(const StagedSegments& assignment) {
  if (const auto found = known_.find(assignment.cuts); found != known_.end()) return &found->second;
  if (left_ == 0) return nullptr;
  --left_;
  const std::vector<double>& costs = known_[assignment.cuts] = stage_costs_(assignment);
  if (best_costs_.empty() || is_better(costs, best_costs_)) {
    best_ = assignment;
    best_costs_ = costs;
  }
  return &costs;
}

double Measurements::best_largest() const {
  if (best_costs_.empty()) return std::numeric_limits<double>::infinity();
  return *std::max_element(best_costs_.begin(), best_costs_.end());
}

void explore(AssignmentFamily* family, int most, Measurements* measurements) {
  constexpr double kShareWorthTrying = 0.995;
  for (int round = 0; round < most; ++round) {
    const std::optional<StagedSegments> proposal =
        family->best_below(kShareWorthTrying * measurements->best_largest());
    if (!proposal) return;
    const std::vector<double>* costs = measurements->measure(*proposal);
    if (!costs) return;
    family->learn(*proposal, *costs);
  }
}

void shift_cuts(const std::vector<NodeId>& places, Measurements* measurements) {
  constexpr int kMostCuts = 3;
  for (int num_cuts = 1; num_cuts <= kMostCuts;) {
    const std::vector<int> stages = largest_first(measurements->best_costs());
    const bool has_improved = std::any_of(stages.begin(), stages.end(), [&](int stage) {
      return shift_once(places, stage, num_cuts, measurements);
    });
    num_cuts = has_improved ? 1 : num_cuts + 1;
  }
}

}  // namespace tessera
