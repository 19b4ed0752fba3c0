#include "tessera/report/task_events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tessera {
namespace {

/// Whose parts of the network a rank runs: GEMS mirrors every second micro-batch.
std::set<int> stages_of(const Plan& plan, int rank) {
  const int own = plan.stage_of_rank(rank);
  std::set<int> stages;
  for (int stage = 0; stage < plan.num_stages(); ++stage)
    for (int64_t m = 0; m < std::min<int64_t>(2, plan.micro_batches); ++m)
      if (plan.place_of_stage(stage, m) == own) stages.insert(stage);
  return stages;
}

}  // namespace

TraceEvent task_event(int rank, const Enter& enter, double begin_us, double end_us) {
  TraceEvent event{.rank = rank, .begin_us = begin_us, .duration_us = end_us - begin_us};
  if (enter.part != Enter::Part::kTask) {
    event.name = enter.part == Enter::Part::kSetUp ? "set up" : "finish";
    event.category = "step";
    return event;
  }
  const Task& task = enter.task;
  event.category = to_string(task.kind);
  event.name = fmt::format("{} {}", event.category, task.micro_batch);
  event.args = {{"micro-batch", fmt::format("{}", task.micro_batch)},
                {"chunk", fmt::format("{}", task.chunk)},
                {"stage", fmt::format("{}", enter.stage)}};
  return event;
}

TraceEvent inner_event(int rank, const char* category, const std::string& name, double begin_us,
                       double end_us) {
  return {.name = name,
          .category = category,
          .rank = rank,
          .begin_us = begin_us,
          .duration_us = end_us - begin_us};
}

std::vector<std::string> rank_names(const Plan& plan) {
  std::vector<std::string> names;
  for (int rank = 0; rank < plan.num_ranks(); ++rank) {
    names.push_back(fmt::format("rank {}", rank));
    if (plan.num_stages() == 1) continue;
    const std::set<int> stages = stages_of(plan, rank);
    names.back() +=
        fmt::format(" (stage{} {})", stages.size() > 1 ? "s" : "", fmt::join(stages, ", "));
  }
  return names;
}

}  // namespace tessera
