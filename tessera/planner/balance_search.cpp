#include "tessera/planner/balance_search.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Shifts one cut by some places; false where a segment would be left empty.
bool shift(const std::vector<NodeId>& places, int cut, int steps, StagedSegments* assignment) {
  NodeId& place = assignment->cuts[cut];
  const auto here = std::lower_bound(places.begin(), places.end(), place);
  const auto target = here - places.begin() + steps;
  if (target < 0 || target >= static_cast<int64_t>(places.size())) return false;
  place = places[target];
  return assignment->cuts[cut - 1] < place && place < assignment->cuts[cut + 1];
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
bool shift_once(const std::vector<NodeId>& places, int stage, Measurements* measurements) {
  const StagedSegments start = measurements->best();
  for (int steps : {1, -1, 2, -2, 4, -4})
    for (int cut : cuts_of_stage(start, stage)) {
      StagedSegments shifted = start;
      if (!shift(places, cut, steps, &shifted) || measurements->knows(shifted)) continue;
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

std::optional<StagedSegments> explore(AssignmentFamily* family, int most,
                                      Measurements* measurements) {
  std::optional<StagedSegments> last;
  constexpr double kShareWorthTrying = 0.995;
  for (int round = 0; round < most; ++round) {
    const std::optional<StagedSegments> proposal =
        family->best_below(kShareWorthTrying * measurements->best_largest());
    if (!proposal) break;
    const std::vector<double>* costs = measurements->measure(*proposal);
    if (!costs) break;
    family->learn(*proposal, *costs);
    last = proposal;
  }
  return last;
}

void shift_cuts(const std::vector<NodeId>& places, Measurements* measurements) {
  bool has_improved = true;
  while (has_improved) {
    has_improved = false;
    for (int stage : largest_first(measurements->best_costs()))
      if (!has_improved) has_improved = shift_once(places, stage, measurements);
  }
}

}  // namespace tessera
