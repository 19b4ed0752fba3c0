#include "tests/ranks/engine/random_stages.h"

#include <algorithm>

#include "tessera/lower/early.h"
#include "tessera/lower/micro_batch_norm.h"
#include "tests/ranks/engine/draw.h"

namespace tessera {
namespace {

using Assignment = std::map<std::string, int>;

/// Cuts the node order into as many consecutive parts as `stage_of_part` has entries.
Assignment by_parts(const Graph& graph, const std::vector<int>& stage_of_part, Draw& draw) {
  const int64_t num_nodes = std::ssize(graph.nodes());
  std::vector<int64_t> cuts{0, num_nodes};
  for (size_t i = 1; i < stage_of_part.size(); ++i) cuts.push_back(draw.integer(0, num_nodes));
  std::sort(cuts.begin(), cuts.end());
  Assignment assignment;
  for (size_t part = 0; part < stage_of_part.size(); ++part)
    for (int64_t node = cuts[part]; node < cuts[part + 1]; ++node)
      assignment[graph.nodes()[node].name] = stage_of_part[part];
  return assignment;
}

/// Consecutive stages, a V, or anything at all.
Assignment random_assignment(const Graph& graph, int num_stages, Draw& draw) {
  std::vector<int> parts;
  for (int stage = 0; stage < num_stages; ++stage) parts.push_back(stage);
  if (draw.chance(0.5)) return by_parts(graph, parts, draw);
  if (draw.chance(0.4)) {
    for (int stage = num_stages - 2; stage >= 0; --stage) parts.push_back(stage);
    return by_parts(graph, parts, draw);
  }
  Assignment assignment;
  for (const Node& node : graph.nodes())
    assignment[node.name] = static_cast<int>(draw.integer(0, num_stages - 1));
  return assignment;
}

/// Few ranks in all: each is a thread.
std::vector<std::vector<int64_t>> random_grids(const ValueType& input, int num_stages, Draw& draw) {
  std::vector<std::vector<int64_t>> grids(num_stages);
  int64_t spare = 8 - num_stages;
  for (std::vector<int64_t>& grid : grids) {
    if (draw.chance(0.3)) continue;
    int64_t ranks = 1;
    for (int i = 0; i < input.num_spatial(); ++i) {
      const int64_t size = input.axes[input.first_spatial() + i].size;
      grid.push_back(
          draw.integer(1, std::max<int64_t>(1, std::min({size, 3L, (spare + 1) / ranks}))));
      ranks *= grid.back();
    }
    spare -= ranks - 1;
  }
  return grids;
}

bool has_batch_norm(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->batch_parts() > 0; });
}

/// With a single value per channel in a micro-batch there is no variance.
int64_t most_micro_batches(const Graph& graph, int64_t batch) {
  for (int64_t parts = batch; parts > 1; --parts) {
    try {
      with_micro_batch_norm(graph, parts);
      return parts;
    } catch (const std::exception&) {
    }
  }
  return 1;
}

ScheduleKind random_schedule(const Graph& graph, const Plan& plan, Draw& draw) {
  if (find_early_part(graph, plan.micro_batches).late_loss >= 0) return ScheduleKind::kGpipe;
  return draw.one_of<ScheduleKind>({ScheduleKind::kSequential, ScheduleKind::kGpipe,
                                    ScheduleKind::kOneForwardOneBackward, ScheduleKind::kZeroBubble,
                                    ScheduleKind::kGems});
}

}  // namespace

RandomCase random_stages_case(uint64_t seed) {
  RandomCase result = random_case(seed);
  Draw draw(seed * 7919 + 13);
  const ValueType input = result.graph.type(result.graph.inputs()[0]);
  const int num_stages = static_cast<int>(draw.integer(2, 4));
  Plan plan;
  plan.stages = random_grids(input, num_stages, draw);
  plan.stage_of = random_assignment(result.graph, num_stages, draw);
  const int64_t most = has_batch_norm(result.graph)
                           ? most_micro_batches(result.graph, input.batch())
                           : input.batch();
  plan.micro_batches = draw.integer(1, most);
  plan.data = draw.chance(0.25)
                  ? draw.integer(1, std::min<int64_t>(2, input.batch() / plan.micro_batches))
                  : 1;
  if (plan.micro_batches > 1)
    result.graph = with_micro_batch_norm(result.graph, plan.micro_batches);
  plan.schedule = random_schedule(result.graph, plan, draw);
  if (plan.schedule == ScheduleKind::kGems)
    for (int stage = 0; stage < num_stages; ++stage)
      plan.stages[stage] = plan.stages[std::min(stage, num_stages - 1 - stage)];
  if (draw.chance(0.2))
    for (int i = 0; i < input.num_spatial(); ++i) {
      int64_t room = input.axes[input.first_spatial() + i].size;
      for (int stage = 0; stage < num_stages; ++stage)
        room =
            std::min(room, input.axes[input.first_spatial() + i].size / plan.space_parts(stage, i));
      plan.pieces.push_back(draw.integer(1, std::min<int64_t>(2, room)));
    }
  result.plan = plan;
  result.description =
      result.description.substr(0, result.description.rfind('\n') + 1) + to_string(plan) + "\n";
  for (const Node& node : result.graph.nodes())
    result.description += node.name + "@" + std::to_string(plan.stage_of.at(node.name)) + " ";
  return result;
}

}  // namespace tessera
