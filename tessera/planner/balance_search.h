#pragma once
// Searches for the assignment whose largest stage is smallest, where the true cost of the stages
// takes long to measure: families of assignments propose what their model predicts to be best and
// learn from each measurement, until no member promises to beat the best one found; then the cuts
// of the best are shifted as long as that helps. No randomness: the same input gives the same
// result.

#include <functional>
#include <map>
#include <vector>

#include "tessera/planner/balance_family.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

/// The true cost of every stage.
using StageCosts = std::function<std::vector<double>(const StagedSegments&)>;

/// Measures, each assignment once and no more than `most_measurements`, and remembers the best.
class Measurements {
 public:
  Measurements(const StageCosts& stage_costs, int most_measurements)
      : stage_costs_(stage_costs), left_(most_measurements) {}

  /// Null when there are no measurements left.
  const std::vector<double>* measure(const StagedSegments& assignment);
  bool knows(const StagedSegments& assignment) const { return known_.contains(assignment.cuts); }
  int left() const { return left_; }

  const StagedSegments& best() const { return best_; }
  const std::vector<double>& best_costs() const { return best_costs_; }
  double best_largest() const;

 private:
  const StageCosts& stage_costs_;
  int left_;
  std::map<std::vector<NodeId>, std::vector<double>> known_;  // by cuts
  StagedSegments best_;
  std::vector<double> best_costs_;
};

/// Whether the largest of `a` is smaller; where they are equal the second largest, and so on.
bool is_better(std::vector<double> a, std::vector<double> b);

/// Measures what a family proposes, until it has no more to offer that is better than the best by
/// a margin that matters, or `most` are done.
void explore(AssignmentFamily* family, int most, Measurements* measurements);

/// Shifts cuts of the best assignment along `places` while that makes it better: single cuts, those
/// of its largest stage first, then neighbouring cuts together.
void shift_cuts(const std::vector<NodeId>& places, Measurements* measurements);

}  // namespace tessera
