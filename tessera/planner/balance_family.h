#pragma once
// Families of assignments that can be searched exactly for a given cost of each stage, and that
// learn: a predicted cost is replaced when the true one has been measured.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/planner/balance_nesting.h"
#include "tessera/planner/balance_partition.h"
#include "tessera/planner/balance_places.h"

namespace tessera {

class AssignmentFamily {
 public:
  virtual ~AssignmentFamily() = default;
  /// The member whose largest stage is predicted to be smallest, if that is less than `limit`.
  virtual std::optional<StagedSegments> best_below(double limit) const = 0;
  /// Takes the measured costs of the stages of a member.
  virtual void learn(const StagedSegments& member, const std::vector<double>& stage_costs) = 0;
};

/// The costs of a segment for all stages.
using SegmentCosts = std::function<std::vector<double>(int begin, int end)>;

/// Every stage is one segment, in the order of the stages. `costs` is asked for segments between
/// places, by their indices, once each.
std::unique_ptr<AssignmentFamily> consecutive_stages(const std::vector<NodeId>& places,
                                                     int num_stages, const SegmentCosts& costs);

/// The costs of a ring as each of the rings, from the outermost on.
using RingCosts = std::function<std::vector<double>(const Ring& ring)>;

/// Rings larger than one that costs `limit` or more are taken to cost as much and are not asked
/// for.
struct RingSearch {
  RingCosts costs;  // of rings between places, by their indices; asked for once each, at most
  double limit = 0;
};

/// Every stage is a ring around the stages after it.
std::unique_ptr<AssignmentFamily> nested_stages(const std::vector<NodeId>& places, int num_stages,
                                                const RingSearch& search);

/// Stages follow each other, but their ranks also run the stage at the other end: what has a cost
/// are pairs of stages, which are rings.
std::unique_ptr<AssignmentFamily> mirrored_stages(const std::vector<NodeId>& places, int num_stages,
                                                  const RingSearch& search);

}  // namespace tessera
