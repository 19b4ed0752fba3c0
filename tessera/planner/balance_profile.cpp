#include "tessera/planner/balance_profile.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

bool has_margins(const StepBuffer& buffer) { return buffer.message_bytes < buffer.bytes; }

}  // namespace

Profiler::Profiler(const StepTable& table)
    : table_(table),
      is_here_(table.num_units, false),
      fixed_seen_(table.fixed_bytes.size(), 0),
      seen_(table.buffers.size(), 0),
      lives_(table.buffers.size()) {}

const StageProfile& Profiler::profile(const Segments& segments) {
  enter(segments);
  for (const auto& segment : segments) pass_task(TaskKind::kForward, segment);
  for (TaskKind kind : {TaskKind::kBackward, TaskKind::kWeight})
    for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment)
      pass_task(kind, *segment);
  task_begins_.push_back(now_);
  end_lives();
  measure(segments.size());
  for (const auto& [begin, end] : segments)
    std::fill(is_here_.begin() + begin, is_here_.begin() + end, false);
  return result_;
}

void Profiler::enter(const Segments& segments) {
  ++num_profiles_;
  now_ = 0;
  touched_.clear();
  task_begins_.clear();
  result_.arrivals.clear();
  result_.fixed_bytes = result_.reduction_bytes = 0;
  for (const auto& [begin, end] : segments)
    for (int unit = begin; unit < end; ++unit) {
      is_here_[unit] = true;
      for (int id : table_.fixed_of_unit[unit])
        if (std::exchange(fixed_seen_[id], num_profiles_) != num_profiles_) {
          result_.fixed_bytes += table_.fixed_bytes[id];
          result_.reduction_bytes += table_.reduction_bytes[id];
        }
    }
  result_.reduction_bytes = std::min(result_.reduction_bytes, table_.largest_reduction);
}

/// The first moment of a task is when it has what it was sent and has done nothing yet, the last
/// when it has done all.
void Profiler::pass_task(TaskKind kind, const std::pair<int, int>& segment) {
  task_begins_.push_back(now_++);
  const auto [begin, end] = segment;
  for (int i = begin; i < end; ++i) {
    const int unit = kind == TaskKind::kForward ? i : begin + end - 1 - i;
    for (const Step& step : table_.of(kind, unit)) {
      if (step.with != kNoUnit && !is_here_[step.with]) continue;
      if (step.without != kNoUnit && is_here_[step.without]) continue;
      for (int buffer : step.buffers) touch(buffer);
      ++now_;
    }
  }
  ++now_;
}

/// What would be computed again elsewhere is kept instead: as it came, where it has margins to be
/// put into once more.
void Profiler::touch(int id) {
  const StepBuffer& buffer = table_.buffers[id];
  const bool comes_again = buffer.first_made >= 0 && !is_here_[buffer.made_by];
  if (comes_again && !has_margins(buffer)) id = buffer.first_made;
  if (std::exchange(seen_[id], num_profiles_) != num_profiles_) {
    touched_.push_back(id);
    lives_[id] = {now_, now_, now_};
    if (comes_again && has_margins(buffer)) lives_[buffer.first_made].unpacked = now_;
  }
  lives_[id].last = now_;
}

bool Profiler::is_made_here(const StepBuffer& buffer) const {
  return buffer.made_by != kNoUnit && is_here_[buffer.made_by] && is_here_[buffer.made_for];
}

int Profiler::task_at(int moment) const {
  const auto after = std::upper_bound(task_begins_.begin(), task_begins_.end(), moment);
  return static_cast<int>(after - task_begins_.begin()) - 1;
}

void Profiler::end_lives() {
  changes_.assign(now_, {});
  result_.sent.assign(task_begins_.size() - 1, 0);
  for (int id : touched_) {
    const StepBuffer& buffer = table_.buffers[id];
    const auto [first, last, unpacked] = lives_[id];
    if (!is_made_here(buffer)) {
      receive(id);
      continue;
    }
    const bool is_sent = !std::all_of(buffer.units.begin(), buffer.units.end(),
                                      [this](int unit) { return is_here_[unit]; });
    if (is_sent)
      send(id);
    else
      live(first, last, buffer.bytes);
  }
}

/// What is sent stays until the task that made it has ended; a gradient leaves its margins behind.
void Profiler::send(int id) {
  const StepBuffer& buffer = table_.buffers[id];
  const auto [first, last, unpacked] = lives_[id];
  const int task = task_at(first), end_of_task = task_begins_[task + 1] - 1;
  if (last > end_of_task) return live(first, last, buffer.bytes);
  const double bytes = buffer.made_forward ? buffer.bytes : buffer.message_bytes;
  live(first, last, buffer.bytes);
  live(last + 1, end_of_task, bytes);
  result_.sent[task] += bytes;
}

/// What comes from elsewhere is there when its task begins; where a value has margins, what came
/// and the buffer that it is put into are there together.
void Profiler::receive(int id) {
  const StepBuffer& buffer = table_.buffers[id];
  const auto [first, last, unpacked] = lives_[id];
  if (buffer.first_made >= 0) return live(first, last, buffer.bytes);
  const int task = task_at(first), begin = task_begins_[task];
  const bool is_sent = buffer.made_by != kNoUnit && !is_here_[buffer.made_by];
  if (is_sent || buffer.from_start)
    result_.arrivals.push_back({buffer.made_by, buffer.made_forward, task, buffer.message_bytes});
  if (!is_sent) return live(begin, last, buffer.bytes);
  if (!buffer.made_forward) return live(begin, last, buffer.message_bytes);
  if (has_margins(buffer)) live(begin, unpacked, buffer.message_bytes);
  live(has_margins(buffer) ? first : begin, last, buffer.bytes);
}

void Profiler::live(int first, int last, double bytes) {
  changes_[first].begins += bytes;
  changes_[last].ends += bytes;
}

void Profiler::measure(size_t num_segments) {
  const size_t num_tasks = task_begins_.size() - 1;
  result_.peak.assign(num_tasks, 0);
  result_.level.clear();
  double bytes = 0;
  for (size_t task = 0; task < num_tasks; ++task) {
    for (int moment = task_begins_[task]; moment < task_begins_[task + 1]; ++moment) {
      bytes += changes_[moment].begins;
      result_.peak[task] = std::max(result_.peak[task], bytes);
      bytes -= changes_[moment].ends;
    }
    result_.level.push_back(bytes);
  }
  result_.weight_bytes.clear();
  for (size_t task = num_tasks; task-- > 2 * num_segments;)
    result_.weight_bytes.push_back(result_.level[task - 1] - result_.level[task]);
}

}  // namespace tessera
