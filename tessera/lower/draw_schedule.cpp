#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "tessera/lower/schedule.h"

namespace tessera {
namespace {

double end_of(const std::vector<ScheduledTask>& tasks) {
  double end = 0;
  for (const ScheduledTask& scheduled : tasks) end = std::max(end, scheduled.end);
  return end;
}

/// Which chunks a stage runs on a micro-batch: per (stage, micro-batch), ascending.
using ChunksHere = std::map<std::pair<int, int>, std::set<int>>;

ChunksHere chunks_here(const std::vector<ScheduledTask>& tasks) {
  ChunksHere chunks;
  for (const ScheduledTask& scheduled : tasks)
    chunks[{scheduled.stage, scheduled.task.micro_batch}].insert(scheduled.task.chunk);
  return chunks;
}

char letter(TaskKind kind) {
  return kind == TaskKind::kForward ? 'F' : kind == TaskKind::kBackward ? 'B' : 'W';
}

/// "F0"; "f0" for the stage's second chunk, "F0'" for its third, "f0'" for its fourth.
std::string name_of(const ScheduledTask& scheduled, const ChunksHere& chunks, size_t digits) {
  const Task& task = scheduled.task;
  const std::set<int>& here = chunks.at({scheduled.stage, task.micro_batch});
  const auto position = std::distance(here.begin(), here.find(task.chunk));
  const char kind = letter(task.kind);
  return fmt::format("{}{:0{}}{}", position % 2 == 0 ? kind : static_cast<char>(std::tolower(kind)),
                     task.micro_batch, digits, std::string(position / 2, '\''));
}

size_t digits_of_micro_batches(const std::vector<ScheduledTask>& tasks) {
  int largest = 0;
  for (const ScheduledTask& scheduled : tasks)
    largest = std::max(largest, scheduled.task.micro_batch);
  return std::to_string(largest).size();
}

}  // namespace

const char* to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::kForward:
      return "forward";
    case TaskKind::kBackward:
      return "backward";
    case TaskKind::kWeight:
      return "weight";
  }
  return "?";
}

double bubble_fraction(const std::vector<ScheduledTask>& tasks, int num_stages) {
  const double end = end_of(tasks);
  if (end == 0) return 0;
  double busy = 0;
  for (const ScheduledTask& scheduled : tasks) busy += scheduled.end - scheduled.begin;
  return 1 - busy / (num_stages * end);
}

std::vector<int> most_in_flight(const std::vector<ScheduledTask>& tasks, int num_stages) {
  struct Stay {
    int stage;
    double begin;
    double end;
  };
  std::map<std::pair<int, int>, Stay> stays;  // per chunk and micro-batch
  for (const auto& [task, stage, begin, end] : tasks) {
    const auto stay = stays.try_emplace({task.chunk, task.micro_batch}, Stay{stage, begin, end});
    stay.first->second.end = end;  // tasks lie in order, so the last one sets it
  }
  using Change = std::pair<double, int>;  // at a time, by -1 or 1: who leaves goes before who comes
  std::vector<std::vector<Change>> changes(num_stages);
  for (const auto& [which, stay] : stays) {
    changes[stay.stage].push_back({stay.begin, 1});
    changes[stay.stage].push_back({stay.end, -1});
  }
  std::vector<int> most(num_stages, 0);
  for (int stage = 0; stage < num_stages; ++stage) {
    std::ranges::sort(changes[stage]);
    int now = 0;
    for (const Change& change : changes[stage])
      most[stage] = std::max(most[stage], now += change.second);
  }
  return most;
}

std::string draw_schedule(const std::vector<ScheduledTask>& tasks, int num_stages) {
  const ChunksHere chunks = chunks_here(tasks);
  const size_t digits = digits_of_micro_batches(tasks);
  const size_t num_cells = static_cast<size_t>(std::ceil(end_of(tasks)));
  std::vector<std::vector<std::string>> rows(num_stages, std::vector<std::string>(num_cells, "."));
  size_t width = 1;
  for (const ScheduledTask& scheduled : tasks) {
    const std::string name = name_of(scheduled, chunks, digits);
    width = std::max(width, name.size());
    // The cells whose middle lies in the task.
    const double end = std::ceil(scheduled.end - 0.5);
    for (double cell = std::ceil(scheduled.begin - 0.5); cell < end; ++cell)
      rows[scheduled.stage][static_cast<size_t>(cell)] = name;
  }
  const size_t label_width = std::to_string(num_stages - 1).size();
  std::string drawing;
  for (int stage = 0; stage < num_stages; ++stage) {
    drawing += fmt::format("{:>{}} |", stage, label_width);
    for (const std::string& cell : rows[stage]) drawing += fmt::format(" {:>{}}", cell, width);
    drawing += '\n';
  }
  return drawing;
}

}  // namespace tessera
