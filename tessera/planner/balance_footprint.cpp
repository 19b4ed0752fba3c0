#include "tessera/planner/balance_footprint.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "tessera/lower/chunks.h"
#include "tessera/planner/balance_lowering.h"

namespace tessera {
namespace {

Plan one_stage(const Plan& plan, const std::vector<int64_t>& grid) {
  Plan alone = plan;
  alone.space = grid;
  alone.stages.clear();
  alone.stage_of.clear();
  return alone;
}

/// The unit of every node of a graph that was made from `original`.
std::vector<int> unit_of_nodes(const Graph& graph, const Graph& original,
                               const std::vector<NodeId>& places) {
  const int num_units = static_cast<int>(places.size()) - 1;
  Plan units;
  units.stages.resize(num_units);
  units.stage_of = stage_by_name(original, {places, stages_in_turn(num_units, num_units)});
  return stages_of_nodes(graph, units);
}

}  // namespace

Footprint::Footprint(const Graph& graph, const Plan& plan, const BalanceOptions& options,
                     const std::vector<int64_t>& grid, const std::vector<NodeId>& places)
    : num_units_(static_cast<int>(places.size()) - 1),
      fixed_bytes_(num_units_, 0),
      steps_(num_units_ * (splits_backward(plan.schedule) ? 3 : 2)) {
  const LoweredStages lowered = lower_stages(graph, one_stage(plan, grid), options);
  const Program& program = lowered.programs[0];
  const std::vector<int> unit_of_node = unit_of_nodes(lowered.graph, graph, places);
  for (const Buffer& buffer : program.buffers)
    buffer_bytes_.push_back(static_cast<double>(buffer_bytes(buffer, options.real)));
  slots_of_buffer_.resize(buffer_bytes_.size());
  lives_.resize(buffer_bytes_.size());
  read_steps(program, unit_of_node);
  add_parameters(lowered, plan, unit_of_node, options);
}

/// Those of the first micro-batch. An instruction belongs to the node that runs next, since most
/// prepare something; what is computed again belongs to the node whose backward wants it. What is
/// loaded in the set-up is there for all micro-batches.
void Footprint::read_steps(const Program& program, const std::vector<int>& unit_of_node) {
  std::vector<std::pair<int, Step>> later;  // units and steps up to the end of the task, reversed
  for (size_t i = program.instructions.size(); i-- > 0;) {
    const Instruction& each = program.instructions[i];
    if (const auto* enter = std::get_if<Enter>(&each)) {
      std::reverse(later.begin(), later.end());
      for (auto& [unit, step] : later)
        if (enter->part == Enter::Part::kSetUp) {
          for (BufferId id : step) fixed_bytes_[unit] += std::exchange(buffer_bytes_[id], 0);
        } else if (enter->part == Enter::Part::kTask && enter->task.micro_batch == 0) {
          steps_[slot(enter->task.kind, unit)].push_back(std::move(step));
        }
      later.clear();
      continue;
    }
    const auto* run = std::get_if<Run>(&each);
    int unit = later.empty() ? -1 : later.back().first;
    if (run && (run->phase != Phase::kRecompute || unit < 0)) unit = unit_of_node[run->node];
    Step step = touched_buffers(each);
    std::erase_if(step, [&](BufferId id) {
      const BufferKind kind = program.buffers[id].kind;
      return is_permanent(kind) || kind == BufferKind::kReduction;
    });
    if (unit >= 0 && !step.empty()) later.emplace_back(unit, std::move(step));
  }
  for (int slot = 0; slot < static_cast<int>(steps_.size()); ++slot)
    for (const Step& step : steps_[slot])
      for (BufferId id : step)
        if (slots_of_buffer_[id].empty() || slots_of_buffer_[id].back() != slot)
          slots_of_buffer_[id].push_back(slot);
}

void Footprint::add_parameters(const LoweredStages& lowered, const Plan& plan,
                               const std::vector<int>& unit_of_node,
                               const BalanceOptions& options) {
  const Program& program = lowered.programs[0];
  for (const Bucket& bucket : program.buckets)
    if (!is_permanent(program.buffers[bucket.buffer].kind))
      bytes_of_bucket_[bucket.buffer].assign(num_units_, 0);
  const int64_t real_bytes = element_bytes(ElementType::kWide, options.real);
  for (size_t id = 0; id < unit_of_node.size(); ++id)
    for (const auto* ids :
         {&lowered.graph.nodes()[id].parameters, &lowered.graph.nodes()[id].buffers})
      for (ParameterId parameter : *ids) {
        const Parameter& each = lowered.graph.parameters()[parameter];
        const int unit = unit_of_node[id];
        const auto bytes = static_cast<double>(each.numel() * real_bytes);
        fixed_bytes_[unit] += bytes;
        if (each.role != ParameterRole::kTrainable) continue;
        fixed_bytes_[unit] += static_cast<double>(options.optimiser_copies) * bytes;
        // With several micro-batches those of the first are there while others run forward.
        if (plan.micro_batches > 1)
          fixed_bytes_[unit] += bytes;
        else
          add_gradient(program, parameter, unit, bytes);
      }
}

/// It comes with its bucket, or with the first gradient of the part that lies in that.
void Footprint::add_gradient(const Program& program, ParameterId parameter, int unit,
                             double bytes) {
  for (const Bucket& bucket : program.buckets)
    if (std::ranges::find(bucket.parameters, parameter) != bucket.parameters.end())
      bytes_of_bucket_.at(bucket.buffer)[unit] += bytes;
}

double Footprint::bucket_bytes(BufferId bucket, const Segments& segments) const {
  const std::vector<double>& bytes = bytes_of_bucket_.at(bucket);
  double total = 0;
  for (const auto& [first, end] : segments)
    total += std::accumulate(bytes.begin() + first, bytes.begin() + end, 0.0);
  return total;
}

int Footprint::slot(TaskKind kind, int unit) const {
  if (kind == TaskKind::kForward) return unit;
  return (kind == TaskKind::kBackward ? 2 : 3) * num_units_ - 1 - unit;
}

std::vector<Footprint::Task> Footprint::tasks_of(const Segments& segments) const {
  std::vector<Task> tasks = segments;
  for (auto each = segments.rbegin(); each != segments.rend(); ++each)
    for (int end = 2 * num_units_; end <= static_cast<int>(steps_.size()); end += num_units_)
      tasks.emplace_back(end - each->second, end - each->first);
  return tasks;
}

HeldBytes Footprint::held(const Segments& segments) {
  constexpr size_t kMostKnown = 4096;
  if (const auto found = known_.find(segments); found != known_.end()) return found->second;
  if (known_.size() == kMostKnown) known_.clear();
  return known_[segments] = walk(segments);
}

HeldBytes Footprint::walk(const Segments& segments) {
  const std::vector<Task> tasks = tasks_of(segments);
  std::vector<int> ends;  // of tasks
  std::vector<BufferId> touched;
  int now = 0;
  ++num_walks_;
  for (const auto& [first, end] : tasks) {
    for (int slot = first; slot < end; ++slot)
      for (const Step& step : steps_[slot]) {
        for (BufferId id : step) {
          Life& life = lives_[id];
          if (life.walk != num_walks_) {
            life = {now, now, num_walks_};
            touched.push_back(id);
          }
          life.last = now;
        }
        ++now;
      }
    ends.push_back(now);
  }
  std::vector<double> begin_bytes(now + 1, 0), end_bytes(now + 1, 0);  // per moment
  for (BufferId id : touched) {
    if (bytes_of_bucket_.contains(id)) {
      begin_bytes[lives_[id].first] += bucket_bytes(id, segments);
      continue;
    }
    pass_on(id, tasks, ends);
    begin_bytes[lives_[id].first] += buffer_bytes_[id];
    end_bytes[lives_[id].last] += buffer_bytes_[id];
  }
  HeldBytes result;
  for (const auto& [first, end] : segments)
    for (int unit = first; unit < end; ++unit) result.fixed += fixed_bytes_[unit];
  double live = 0;
  int moment = 0;
  for (int end : ends) {
    TaskBytes& task = result.tasks.emplace_back();
    for (; moment < end; ++moment) {
      live += begin_bytes[moment];
      task.peak = std::max(task.peak, live);
      live -= end_bytes[moment];
    }
    task.left = live;
  }
  return result;
}

/// What others made is there from the next task on; what others use is sent, and stays until the
/// task has ended.
void Footprint::pass_on(BufferId buffer, const std::vector<Task>& tasks,
                        const std::vector<int>& ends) {
  const auto is_here = [&](int slot) {
    return std::any_of(tasks.begin(), tasks.end(),
                       [&](const Task& task) { return task.first <= slot && slot < task.second; });
  };
  const std::vector<int>& slots = slots_of_buffer_[buffer];
  Life& life = lives_[buffer];
  if (!is_here(slots.front())) {
    size_t next = 0;
    while (tasks[next].first < slots.front()) ++next;
    life.first = next == 0 ? 0 : ends[next - 1];
  } else if (!std::all_of(slots.begin(), slots.end(), is_here)) {
    const int end = *std::upper_bound(ends.begin(), ends.end(), life.first);
    life.last = std::max(life.last, end - 1);
  }
}

}  // namespace tessera
