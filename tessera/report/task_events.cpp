#include "tessera/report/task_events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace tessera {
namespace {

std::set<int> stages_of(const Program& program) {
  std::set<int> stages;
  for (const Instruction& instruction : program.instructions)
    if (const auto* enter = std::get_if<Enter>(&instruction);
        enter && enter->part == Enter::Part::kTask)
      stages.insert(enter->stage);
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

std::vector<std::string> rank_names(const std::vector<Program>& programs) {
  std::vector<std::set<int>> stages;
  std::set<int> all;
  for (const Program& program : programs) {
    stages.push_back(stages_of(program));
    all.insert(stages.back().begin(), stages.back().end());
  }
  std::vector<std::string> names;
  for (size_t r = 0; r < programs.size(); ++r) {
    names.push_back(fmt::format("rank {}", programs[r].rank));
    if (all.size() > 1 && !stages[r].empty())
      names.back() +=
          fmt::format(" (stage{} {})", stages[r].size() > 1 ? "s" : "", fmt::join(stages[r], ", "));
  }
  return names;
}

}  // namespace tessera
