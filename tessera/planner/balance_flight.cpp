#include "tessera/planner/balance_flight.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace tessera {
namespace {

/// So many that more of them change nothing: a pipeline that is full stays so.
int enough_micro_batches(int64_t micro_batches, int64_t num_chunks, ScheduleKind kind) {
  if (kind == ScheduleKind::kGpipe) return static_cast<int>(micro_batches);
  return static_cast<int>(std::min(micro_batches, 2 * num_chunks));
}

}  // namespace

Flights::Flights(const std::vector<int>& stage_of_chunk, const ChunkTracks& tracks,
                 int64_t micro_batches, ScheduleKind kind)
    : num_chunks_(static_cast<int>(stage_of_chunk.size())), tracks_(tracks) {
  Pipeline pipeline =
      Pipeline::chain(1, num_chunks_, enough_micro_batches(micro_batches, num_chunks_, kind));
  pipeline.num_stages = 1 + *std::max_element(stage_of_chunk.begin(), stage_of_chunk.end());
  pipeline.stage_of_chunk = stage_of_chunk;
  follow(schedule_tasks(pipeline, kind), micro_batches, splits_backward(kind));
}

/// Goes with the micro-batches through the schedule and writes the rank's moments down.
void Flights::follow(const std::vector<ScheduledTask>& tasks, int64_t micro_batches,
                     bool has_weights) {
  std::map<int, State> under_way;  // by micro-batch
  std::map<State, int> index_of;
  std::set<std::tuple<OwnTask, OwnTask, std::vector<std::pair<int, int>>>> known;
  std::set<int> begun;
  OwnTask last;
  for (const auto& [task, stage, begin, end] : tasks) {
    const int track = task.micro_batch % static_cast<int>(tracks_.size());
    const std::vector<int>& chunks = tracks_[track];
    const auto found = std::find(chunks.begin(), chunks.end(), task.chunk);
    const int part = static_cast<int>(found - chunks.begin());
    const int num_parts = static_cast<int>(chunks.size());
    State& state = under_way[task.micro_batch];
    begun.insert(task.micro_batch);
    state.track = track;
    state.weights_done.resize(num_parts, !has_weights);
    if (task.kind != TaskKind::kWeight) ++state.progress;
    if (part < num_parts && task.kind == TaskKind::kWeight) {
      state.weights_done[part] = true;
    } else if (part < num_parts) {
      Moment moment;
      moment.last = last;
      moment.now =
          last = {track, task.kind == TaskKind::kForward ? part : 2 * num_parts - 1 - part};
      std::map<int, int> counts;
      for (const auto& [micro_batch, each] : under_way) {
        const auto [entry, is_new] = index_of.try_emplace(each, static_cast<int>(states_.size()));
        if (is_new) states_.push_back(each);
        ++counts[entry->second];
      }
      moment.counts.assign(counts.begin(), counts.end());
      moment.num_not_begun = micro_batches - static_cast<int64_t>(begun.size());
      if (known.insert({moment.now, moment.last, moment.counts}).second)
        moments_.push_back(std::move(moment));
    }
    if (state.progress == 2 * num_chunks_ &&
        std::count(state.weights_done.begin(), state.weights_done.end(), false) == 0)
      under_way.erase(task.micro_batch);
  }
}

/// The progress with which a micro-batch begins a task.
int Flights::progress_before(const OwnTask& task) const {
  const std::vector<int>& chunks = tracks_[task.track];
  const int num_parts = static_cast<int>(chunks.size());
  return task.task < num_parts ? chunks[task.task]
                               : 2 * num_chunks_ - 1 - chunks[2 * num_parts - 1 - task.task];
}

/// There must be units for the chunks of other ranks, and none where there are no chunks.
bool Flights::fits(int track, const Segments& segments, int num_units) const {
  const std::vector<int>& own = tracks_[track];
  if (segments.size() != own.size()) return false;
  int last_chunk = -1, last_unit = 0;
  const auto fits_between = [&](int chunk, int unit) {
    const int chunks = chunk - last_chunk - 1, units = unit - last_unit;
    return units >= chunks && (chunks > 0 || units == 0);
  };
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!fits_between(own[i], segments[i].first)) return false;
    last_chunk = own[i];
    last_unit = segments[i].second;
  }
  return fits_between(num_chunks_, num_units);
}

/// The progress with which a micro-batch has sent something to this rank: what lies between two of
/// its segments is in the chunks between them.
int Flights::arrival_progress(int track, const Segments& segments, const Arrival& arrival,
                              const std::vector<int>& chunk_of_unit) const {
  if (arrival.from == kNoUnit) return 0;
  int first = 0, end = num_chunks_;
  for (size_t i = 0; i < segments.size(); ++i) {
    if (arrival.from < segments[i].first) {
      end = tracks_[track][i];
      break;
    }
    first = tracks_[track][i] + 1;
  }
  const int chunk = std::clamp(chunk_of_unit[arrival.from], first, end - 1);
  return arrival.forward ? chunk + 1 : 2 * num_chunks_ - chunk;
}

/// What a micro-batch holds that is not being worked on: what its last task has left, and what has
/// come for the tasks that it has not begun.
std::vector<double> Flights::held_by_progress(int track, const TrackProfile& own,
                                              const std::vector<int>& chunk_of_unit) const {
  std::vector<double> held(2 * num_chunks_ + 1, 0);
  const int num_tasks = 2 * static_cast<int>(own.segments.size());
  for (int task = 0; task < num_tasks; ++task)
    std::fill(held.begin() + progress_before({track, task}) + 1, held.end(),
              own.profile.level[task]);
  for (const Arrival& arrival : own.profile.arrivals) {
    if (arrival.task >= num_tasks) continue;
    const int begun = progress_before({track, arrival.task}) + 1;
    for (int i = arrival_progress(track, own.segments, arrival, chunk_of_unit); i < begun; ++i)
      held[i] += arrival.bytes;
  }
  return held;
}

double Flights::bytes(const std::vector<const TrackProfile*>& tracks,
                      const std::vector<int>& chunk_of_unit) const {
  if (tracks.size() != tracks_.size()) return std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> held;
  double fixed = 0, most = 0, held_at_start = 0;
  for (size_t i = 0; i < tracks.size(); ++i) {
    const int track = static_cast<int>(i);
    if (!fits(track, tracks[i]->segments, static_cast<int>(chunk_of_unit.size())))
      return std::numeric_limits<double>::infinity();
    held.push_back(held_by_progress(track, *tracks[i], chunk_of_unit));
    fixed += tracks[i]->profile.fixed_bytes;
    most = std::max(most, tracks[i]->profile.reduction_bytes);
    held_at_start += held.back()[0] / static_cast<double>(tracks.size());
  }
  std::vector<double> held_in_state;
  for (const auto& [track, progress, weights_done] : states_) {
    held_in_state.push_back(held[track][progress]);
    for (size_t i = 0; i < weights_done.size(); ++i)
      if (weights_done[i]) held_in_state.back() -= tracks[track]->profile.weight_bytes[i];
  }
  for (const auto& [now, last, counts, num_not_begun] : moments_) {
    double total = static_cast<double>(num_not_begun) * held_at_start;
    for (const auto& [state, count] : counts) total += count * held_in_state[state];
    // Before it began, what the last task had sent was still there; then it has a peak of its own.
    const StageProfile& profile = tracks[now.track]->profile;
    const double sent = last.task < 0 ? 0 : tracks[last.track]->profile.sent[last.task];
    const int before = progress_before(now);
    const std::vector<double>& of_track = held[now.track];
    most = std::max({most, total - of_track[before + 1] + of_track[before] + sent,
                     total - profile.level[now.task] + profile.peak[now.task]});
  }
  return fixed + most;
}

}  // namespace tessera
