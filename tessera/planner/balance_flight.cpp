#include "tessera/planner/balance_flight.h"

#include <algorithm>
#include <map>
#include <set>

#include "tessera/planner/balance_partition.h"

namespace tessera {

Flight::Flight(const std::vector<ScheduledTask>& tasks) {
  std::set<int> chunks;
  std::map<int, std::set<int>> chunks_of;  // by micro-batch
  std::map<int, int> num_tasks;            // likewise
  for (const auto& [task, stage, begin, end] : tasks) {
    chunks.insert(task.chunk);
    chunks_of[task.micro_batch].insert(task.chunk);
    ++num_tasks[task.micro_batch];
  }
  num_chunks_ = chunks.size();
  std::map<std::set<int>, int> track_of;  // by the chunks
  for (const auto& [micro_batch, own] : chunks_of) {
    if (!track_of.try_emplace(own, static_cast<int>(tracks_.size())).second) continue;
    tracks_.emplace_back();
    for (int chunk : own)
      tracks_.back().push_back(std::distance(chunks.begin(), chunks.find(chunk)));
  }
  std::map<int, State> under_way;  // by micro-batch
  std::set<Moment> moments;        // a pipeline that is full has the same again and again
  for (const auto& [task, stage, begin, end] : tasks) {
    State& state = under_way[task.micro_batch];
    state.track = track_of.at(chunks_of.at(task.micro_batch));
    std::map<State, int> others;
    for (const auto& [micro_batch, other] : under_way)
      if (micro_batch != task.micro_batch) ++others[other];
    moments.insert({state, {others.begin(), others.end()}});
    if (++state.num_done == num_tasks.at(task.micro_batch)) under_way.erase(task.micro_batch);
  }
  moments_.assign(moments.begin(), moments.end());
}

double Flight::bytes(const Segments& segments, const HoldingOf& holding_of) const {
  if (segments.size() != num_chunks_) return kUnbounded;
  std::vector<HeldBytes> held;  // per track
  double fixed = 0, most = 0;
  for (const std::vector<size_t>& track : tracks_) {
    Segments own;
    for (size_t index : track) own.push_back(segments[index]);
    held.push_back(holding_of(own));
    fixed += held.back().fixed;
  }
  for (const auto& [now, others] : moments_) {
    double total = held[now.track].tasks[now.num_done].peak;
    for (const auto& [other, count] : others)
      total += count * held[other.track].tasks[other.num_done - 1].left;
    most = std::max(most, total);
  }
  return fixed + most;
}

}  // namespace tessera
