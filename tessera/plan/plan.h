#pragma once
// A plan says how the work is cut: the batch into micro-batches that follow each other, each of
// them into `data` parts; the network into stages; each stage's images into a grid of `space` parts
// along the spatial axes; and each rank's part into `pieces`. Ranks are counted data first, then
// the stages, then each stage's grid in row-major order. A plan can be given by hand and is a JSON
// file.
//
// Example: data 2, space 2x2 is 8 ranks; rank 5 is replica 1, row 0, column 1.
// Example: stages 2x2, 1x1 is 5 ranks; ranks 0 to 3 are the first stage, rank 4 the second.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/members.h"
#include "tessera/graph/value_type.h"
#include "tessera/plan/multigrid.h"
#include "tessera/plan/schedule_costs.h"
#include "tessera/plan/schedule_kind.h"

namespace tessera {

/// Enough for nearly all that more scratch would save.
constexpr int64_t kUsualScratchBytes = 64 << 20;

struct Plan {
  int64_t data = 1;
  std::vector<int64_t> space;   // of one stage: parts per spatial axis; empty: not cut
  std::vector<int64_t> pieces;  // pieces of a rank's part per spatial axis; empty: one

  std::vector<std::vector<int64_t>> stages = {};  // grid of each stage; empty: one stage, `space`
  std::map<std::string, int> stage_of = {};       // of every node, by name, where there are several
  int64_t micro_batches = 1;
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  ScheduleCosts schedule_costs = ScheduleCosts::kTasks;
  int64_t scratch_bytes = kUsualScratchBytes;  // the most that a kernel gets, unless it needs more
  std::optional<Multigrid> multigrid = {};     // residual chains are solved by sweeps; none: exactly

  int num_ranks() const;
  int num_stages() const { return stages.empty() ? 1 : static_cast<int>(stages.size()); }
  int ranks_per_replica() const;
  const std::vector<int64_t>& grid(int stage) const {
    return stages.empty() ? space : stages[stage];
  }
  int ranks_of_stage(int stage) const;
  /// The first rank of a stage inside a replica.
  int first_rank(int stage) const;
  /// The stage that a rank is one of.
  int stage_of_rank(int rank) const;
  /// All ranks of a stage, of all replicas, ascending.
  Members stage_ranks(int stage) const;
  /// Where a stage's part of the network runs for a micro-batch: GEMS mirrors every second one.
  int place_of_stage(int stage, int64_t micro_batch) const;
  int64_t space_parts(int stage, int axis) const;
  int64_t pieces_along(int axis) const;
  bool operator==(const Plan&) const = default;
};

/// Throws InvalidInput where there are more ranks than kMostRanks (plan/limits.h), or a grid has
/// none. Only then may ranks be counted.
void check_num_ranks(const Plan& plan);

/// Throws InvalidInput, naming the values and the remedy, where the plan does not fit the input: a
/// wrong number of axes, a part that is not positive, more parts than samples or pixels.
void check_plan(const Plan& plan, const ValueType& input);

/// "data 2, space 2x2, pieces 1x2", "data 1, 2 stages of 2x2, 1x1, 4 micro-batches, 1f1b".
std::string to_string(const Plan& plan);

std::string to_json(const Plan& plan);
/// Throws InvalidInput that names the file where the text is not a plan.
Plan plan_from_json(const std::string& text, const std::string& file_name);
Plan read_plan(const std::string& path);

}  // namespace tessera
