#pragma once
// What a stage holds at once when several micro-batches are under way. A schedule is walked once,
// for a chain of chunks; what it says is kept as moments: one task of a group of chunks, and how
// far the other micro-batches have come. So the bytes of a stage are the largest sum, over a few
// moments, of what its profile says of each micro-batch.

#include <utility>
#include <vector>

#include "tessera/lower/schedule.h"
#include "tessera/planner/balance_walk.h"

namespace tessera {

class Flights {
 public:
  /// Chunk i of the chain runs on stage_of_chunk[i]. Each group is chunks of one stage, ascending,
  /// that are looked at together.
  Flights(const std::vector<int>& stage_of_chunk, const std::vector<std::vector<int>>& groups,
          int64_t micro_batches, ScheduleKind kind);

  /// The most bytes of a group whose chunks are `parts` of a graph with `num_nodes` nodes; infinite
  /// where they cannot be.
  double bytes(int group, const StageProfile& profile, const std::vector<NodeRange>& parts,
               NodeId num_nodes) const;

 private:
  /// A micro-batch passes the chain forward and backward: its progress is the number of those
  /// tasks, of any stage, that it has begun. Weight gradients, where they are tasks, come any time
  /// after.
  struct Moment {
    int task = 0;                             // of the group, as in StageProfile
    std::vector<std::pair<int, int>> others;  // progress, how many micro-batches have it
    std::vector<int> weights_done;  // per part: of all these, how many need its inputs no more
    bool operator==(const Moment&) const = default;
  };
  struct Group {
    std::vector<int> chunks;
    std::vector<Moment> moments;
  };

  class Recorder;
  bool fits(const Group& group, const std::vector<NodeRange>& parts, NodeId num_nodes) const;
  int progress_before(const Group& group, int task) const;
  int arrival_progress(const Group& group, const Arrival& arrival,
                       const std::vector<NodeRange>& parts, NodeId num_nodes) const;
  std::vector<double> levels(const Group& group, const StageProfile& profile,
                             const std::vector<int>& arrivals) const;

  int num_chunks_;
  std::vector<Group> groups_;
};

}  // namespace tessera
