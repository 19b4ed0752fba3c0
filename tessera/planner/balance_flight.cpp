#include "tessera/planner/balance_flight.h"

#include <algorithm>
#include <limits>
#include <map>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Mirrored micro-batches are not modelled: the schedule that keeps about as much stands for them.
ScheduleKind modelled(ScheduleKind kind) {
  return kind == ScheduleKind::kGems ? ScheduleKind::kSequential : kind;
}

/// So many that more of them change nothing: a pipeline that is full stays so.
int64_t enough_micro_batches(int64_t micro_batches, int64_t num_chunks, ScheduleKind kind) {
  if (kind == ScheduleKind::kGpipe) return micro_batches;
  return std::min(micro_batches, 2 * num_chunks);
}

std::vector<ScheduledTask> schedule_chain(const std::vector<int>& stage_of_chunk,
                                          int64_t micro_batches, ScheduleKind kind) {
  Pipeline pipeline =
      Pipeline::chain(1, static_cast<int>(stage_of_chunk.size()), static_cast<int>(micro_batches));
  pipeline.num_stages = 1 + *std::max_element(stage_of_chunk.begin(), stage_of_chunk.end());
  pipeline.stage_of_chunk = stage_of_chunk;
  return schedule_tasks(pipeline, kind);
}

}  // namespace

/// Follows the micro-batches through a schedule and writes a group's moments down.
class Flights::Recorder {
 public:
  Recorder(int num_chunks, int64_t micro_batches, ScheduleKind kind, Group* group)
      : num_chunks_(num_chunks),
        micro_batches_(static_cast<int>(micro_batches)),
        has_weights_(splits_backward(kind)),
        group_(group),
        progress_(micro_batches, 0),
        weights_done_(micro_batches, std::vector<int>(group->chunks.size(), 0)) {}

  void pass(const Task& task) {
    const auto found = std::find(group_->chunks.begin(), group_->chunks.end(), task.chunk);
    const bool is_ours = found != group_->chunks.end();
    const int part = static_cast<int>(found - group_->chunks.begin());
    if (task.kind == TaskKind::kWeight) {
      if (is_ours) weights_done_[task.micro_batch][part] = 1;
      return;
    }
    if (is_ours) record(task, part);
    ++progress_[task.micro_batch];
  }

 private:
  void record(const Task& task, int part) {
    const int num_parts = static_cast<int>(group_->chunks.size());
    Moment moment;
    moment.task = task.kind == TaskKind::kForward ? part : 2 * num_parts - 1 - part;
    moment.weights_done = weights_done_[task.micro_batch];
    std::map<int, int> others;
    for (int m = 0; m < micro_batches_; ++m) {
      if (m == task.micro_batch || progress_[m] == 0 || has_left(m)) continue;
      ++others[progress_[m]];
      for (int i = 0; i < num_parts; ++i) moment.weights_done[i] += weights_done_[m][i];
    }
    moment.others.assign(others.begin(), others.end());
    std::vector<Moment>& known = group_->moments;
    if (std::find(known.begin(), known.end(), moment) == known.end())
      known.push_back(std::move(moment));
  }

  bool has_left(int m) const {
    return progress_[m] == 2 * num_chunks_ &&
           (!has_weights_ || std::count(weights_done_[m].begin(), weights_done_[m].end(), 0) == 0);
  }

  const int num_chunks_;
  const int micro_batches_;
  const bool has_weights_;
  Group* group_;
  std::vector<int> progress_;                   // per micro-batch
  std::vector<std::vector<int>> weights_done_;  // per micro-batch and part
};

Flights::Flights(const std::vector<int>& stage_of_chunk,
                 const std::vector<std::vector<int>>& groups, int64_t micro_batches,
                 ScheduleKind kind)
    : num_chunks_(static_cast<int>(stage_of_chunk.size())) {
  const int64_t enough = enough_micro_batches(micro_batches, num_chunks_, modelled(kind));
  const std::vector<ScheduledTask> tasks = schedule_chain(stage_of_chunk, enough, modelled(kind));
  for (const std::vector<int>& chunks : groups) {
    groups_.push_back({chunks, {}});
    Recorder recorder(num_chunks_, enough, modelled(kind), &groups_.back());
    for (const ScheduledTask& task : tasks) recorder.pass(task.task);
  }
}

int Flights::progress_before(const Group& group, int task) const {
  const int num_parts = static_cast<int>(group.chunks.size());
  return task < num_parts ? group.chunks[task]
                          : 2 * num_chunks_ - 1 - group.chunks[2 * num_parts - 1 - task];
}

/// The progress with which a micro-batch has sent something to this group. Which chunk the sender
/// is in is not known here: nodes are taken to be spread evenly over the chunks of other groups.
int Flights::arrival_progress(const Group& group, const Arrival& arrival,
                              const std::vector<NodeRange>& parts, NodeId num_nodes) const {
  int first_chunk = 0, last_chunk = num_chunks_;
  NodeId first_node = 0, last_node = num_nodes;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (arrival.from >= parts[i].end) {
      first_chunk = group.chunks[i] + 1;
      first_node = parts[i].end;
    } else {
      last_chunk = group.chunks[i];
      last_node = parts[i].begin;
      break;
    }
  }
  const int chunk = first_chunk + (arrival.from - first_node) * (last_chunk - first_chunk) /
                                      std::max(1, last_node - first_node);
  const bool is_forward = arrival.task < static_cast<int>(parts.size());
  return is_forward ? chunk + 1 : 2 * num_chunks_ - chunk;
}

/// What a micro-batch that is not being worked on holds, by its progress.
std::vector<double> Flights::levels(const Group& group, const StageProfile& profile,
                                    const std::vector<int>& arrivals) const {
  std::vector<double> levels(2 * num_chunks_ + 1, 0);
  int task = 0;
  double level = 0;
  for (int progress = 0; progress <= 2 * num_chunks_; ++progress) {
    if (task < static_cast<int>(profile.level.size()) && progress_before(group, task) < progress)
      level = profile.level[task++];
    levels[progress] = level;
    for (size_t i = 0; i < arrivals.size(); ++i)
      if (arrivals[i] <= progress && progress <= progress_before(group, profile.arrivals[i].task))
        levels[progress] += profile.arrivals[i].bytes;
  }
  return levels;
}

/// There must be nodes for the chunks of other groups, and none where there are no chunks.
bool Flights::fits(const Group& group, const std::vector<NodeRange>& parts,
                   NodeId num_nodes) const {
  if (parts.size() != group.chunks.size()) return false;
  int last_chunk = -1;
  NodeId last_node = 0;
  for (size_t i = 0; i <= parts.size(); ++i) {
    const int chunk = i < parts.size() ? group.chunks[i] : num_chunks_;
    const NodeId node = i < parts.size() ? parts[i].begin : num_nodes;
    const int chunks_between = chunk - last_chunk - 1;
    const NodeId nodes_between = node - last_node;
    if (nodes_between < chunks_between || (chunks_between == 0 && nodes_between > 0)) return false;
    if (i == parts.size()) break;
    last_chunk = chunk;
    last_node = parts[i].end;
  }
  return true;
}

double Flights::bytes(int index, const StageProfile& profile, const std::vector<NodeRange>& parts,
                      NodeId num_nodes) const {
  const Group& group = groups_[index];
  if (!fits(group, parts, num_nodes)) return std::numeric_limits<double>::infinity();
  const bool is_alone = std::all_of(group.moments.begin(), group.moments.end(),
                                    [](const Moment& moment) { return moment.others.empty(); });
  double most = 0;
  if (is_alone && parts.size() == 1) {
    most = *std::max_element(profile.peak.begin(), profile.peak.end());
    return profile.fixed_bytes + most;
  }
  std::vector<int> arrivals;
  for (const Arrival& arrival : profile.arrivals)
    arrivals.push_back(arrival_progress(group, arrival, parts, num_nodes));
  const std::vector<double> level = levels(group, profile, arrivals);
  for (const Moment& moment : group.moments) {
    const int begun = progress_before(group, moment.task);
    double total = profile.peak[moment.task];
    for (size_t i = 0; i < arrivals.size(); ++i)
      if (profile.arrivals[i].task > moment.task && arrivals[i] <= begun)
        total += profile.arrivals[i].bytes;
    for (const auto& [progress, count] : moment.others) total += count * level[progress];
    for (size_t i = 0; i < parts.size(); ++i)
      total -= moment.weights_done[i] * profile.weight_bytes[i];
    most = std::max(most, total);
  }
  return profile.fixed_bytes + most;
}

}  // namespace tessera
