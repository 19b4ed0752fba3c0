#pragma once
// What the tests of the balance share.

#include <algorithm>
#include <vector>

#include "tessera/plan/plan.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

/// Stages of one rank each.
inline Plan staged_plan(int num_stages, int64_t micro_batches = 1,
                        ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward) {
  Plan plan;
  plan.stages.resize(num_stages);
  plan.micro_batches = micro_batches;
  plan.schedule = schedule;
  plan.scratch_bytes = 0;  // it is about values; kernels get what they cannot do without
  return plan;
}

inline double largest(const std::vector<double>& costs) {
  return *std::max_element(costs.begin(), costs.end());
}

/// Calls `visit` with all ways to cut at the places.
template <class Visit>
void for_each_cut(const std::vector<NodeId>& places, const std::vector<int>& stage_of_segment,
                  const Visit& visit, const StagedSegments& begun = {{0}, {}}, size_t next = 1) {
  if (begun.cuts.size() == stage_of_segment.size()) {
    StagedSegments done{begun.cuts, stage_of_segment};
    done.cuts.push_back(places.back());
    return visit(done);
  }
  for (size_t i = next; i + 1 < places.size(); ++i) {
    StagedSegments longer = begun;
    longer.cuts.push_back(places[i]);
    for_each_cut(places, stage_of_segment, visit, longer, i + 1);
  }
}

}  // namespace tessera
