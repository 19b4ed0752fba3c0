#include "tessera/planner/balance_steps.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

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

class StepReader {
 public:
  StepReader(const Graph& graph, const Program& program, const BalanceOptions& options,
             std::vector<int> unit_of_node, int num_units)
      : graph_(graph),
        program_(program),
        options_(options),
        unit_of_node_(std::move(unit_of_node)),
        is_fixed_(program.buffers.size(), false) {
    table_.num_units = num_units;
    table_.buffers.resize(program.buffers.size());
    table_.fixed_of_unit.resize(num_units);
    for (auto& of_kind : table_.steps) of_kind.resize(num_units);
  }

  StepTable read() {
    for (size_t id = 0; id < program_.buffers.size(); ++id) add_buffer(id);
    find_messages();
    find_fixed_buffers();
    add_parameters();
    for (const auto& [task, begin, end] : first_micro_batch()) read_task(task, begin, end);
    arrange();
    find_recomputed();
    return std::move(table_);
  }

 private:
  struct TaskRange {
    TaskKind kind;
    size_t begin;
    size_t end;
  };

  struct Touches {
    TaskKind kind;
    int unit;      // whose node runs, or is served
    int done_for;  // the same, or the one whose backward wants something computed again
    BufferId sum;  // what is added to, if that is all that happens; -1: it is not
    std::vector<BufferId> buffers;
  };

  const Instruction& instruction(size_t index) const { return program_.instructions[index]; }
  const Run* run_at(size_t index) const { return std::get_if<Run>(&instruction(index)); }
  int unit_of(const Run& run) const { return unit_of_node_[run.node]; }

  /// What comes and goes with the values; parameters and reductions are added by themselves.
  std::vector<BufferId> touched(const Instruction& each) const {
    std::vector<BufferId> buffers = touched_buffers(each);
    std::erase_if(buffers, [&](BufferId id) {
      const BufferKind kind = program_.buffers[id].kind;
      return is_permanent(kind) || kind == BufferKind::kReduction;
    });
    return buffers;
  }

  void add_buffer(size_t id) {
    const Buffer& buffer = program_.buffers[id];
    StepBuffer& entry = table_.buffers[id];
    const auto element = static_cast<double>(element_bytes(buffer.element, options_.real));
    entry.bytes = entry.message_bytes = static_cast<double>(buffer.box.volume()) * element;
  }

  /// Values and gradients are passed on without the margins that only their makers or readers want.
  void find_messages() {
    const auto cut = [&](const View& view, BufferKind kind) {
      if (view.buffer < 0 || program_.buffers[view.buffer].kind != kind) return;
      StepBuffer& entry = table_.buffers[view.buffer];
      entry.message_bytes = entry.bytes * static_cast<double>(view.box.volume()) /
                            static_cast<double>(program_.buffers[view.buffer].box.volume());
    };
    for (const Instruction& each : program_.instructions) {
      if (const auto* copy = std::get_if<Copy>(&each); copy && copy->combine == Combine::kStore)
        cut(copy->from, BufferKind::kGradient);
      if (const auto* load = std::get_if<Load>(&each)) cut(load->to, BufferKind::kValue);
      if (const auto* run = std::get_if<Run>(&each))
        for (const Argument& argument : run->arguments) {
          if (argument.role == Role::kGradOutput) cut(argument.view, BufferKind::kGradient);
          if (argument.role == Role::kOutput) cut(argument.view, BufferKind::kValue);
        }
    }
  }

  /// Where the tasks of the first micro-batch stand.
  std::vector<TaskRange> first_micro_batch() const {
    std::vector<TaskRange> ranges;
    bool is_open = false;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const auto* enter = std::get_if<Enter>(&instruction(i));
      if (!enter) continue;
      if (is_open) ranges.back().end = i;
      is_open = enter->part == Enter::Part::kTask && enter->task.micro_batch == 0;
      if (is_open) ranges.push_back({enter->task.kind, i, i});
    }
    return ranges;
  }

  /// What several micro-batches touch is there for all of them; who uses it has it. (A send may end
  /// with any later task.)
  void find_fixed_buffers() {
    constexpr int kUntouched = -1, kAfter = -2;
    std::vector<int> touched_by(program_.buffers.size(), kUntouched);
    int now = kUntouched;
    for (const Instruction& each : program_.instructions) {
      if (const auto* enter = std::get_if<Enter>(&each);
          enter && enter->part != Enter::Part::kSetUp)
        now = enter->part == Enter::Part::kTask ? enter->task.micro_batch : kAfter;
      if (std::holds_alternative<FinishTransfer>(each)) continue;
      for (BufferId buffer : touched(each)) {
        if (now == kUntouched) table_.buffers[buffer].from_start = true;
        const int before = std::exchange(touched_by[buffer], now);
        if (before != kUntouched && before != now) is_fixed_[buffer] = true;
      }
    }
    if (program_.loss >= 0) is_fixed_[program_.loss] = true;
    std::vector<std::vector<int>> units_of(program_.buffers.size());
    for (const Instruction& each : program_.instructions)
      if (const auto* run = std::get_if<Run>(&each))
        for (BufferId buffer : touched(each))
          if (is_fixed_[buffer]) units_of[buffer].push_back(unit_of(*run));
    for (size_t id = 0; id < units_of.size(); ++id)
      if (is_fixed_[id]) add_fixed(table_.buffers[id].bytes, std::move(units_of[id]));
  }

  void add_parameters() {
    std::vector<double> copies(graph_.parameters().size(), 1);
    for (const Bucket& bucket : program_.buckets)
      for (ParameterId id : bucket.parameters) ++copies[id];
    std::vector<std::vector<int>> units_of(copies.size());
    for (size_t id = 0; id < graph_.nodes().size(); ++id)
      for (const auto* ids : {&graph_.nodes()[id].parameters, &graph_.nodes()[id].buffers})
        for (ParameterId parameter : *ids) units_of[parameter].push_back(unit_of_node_[id]);
    for (size_t id = 0; id < copies.size(); ++id) {
      const Parameter& parameter = graph_.parameters()[id];
      if (parameter.role == ParameterRole::kTrainable)
        copies[id] += static_cast<double>(options_.optimiser_copies);
      const auto bytes =
          static_cast<double>(parameter.numel() * element_bytes(ElementType::kReal, options_.real));
      add_fixed(copies[id] * bytes, std::move(units_of[id]),
                parameter.role == ParameterRole::kTrainable ? received_share() * bytes : 0);
    }
  }

  /// How much of a gradient its reduction receives; the same of all.
  double received_share() {
    for (const Instruction& each : program_.instructions)
      if (const auto* start = std::get_if<StartReduce>(&each);
          start && start->received >= 0 && start->buffer != program_.loss) {
        const double bytes = table_.buffers[start->received].bytes;
        table_.largest_reduction = std::max(table_.largest_reduction, bytes);
        return bytes / table_.buffers[start->buffer].bytes;
      }
    return 0;
  }

  void add_fixed(double bytes, std::vector<int> units, double reduction_bytes = 0) {
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    for (int unit : units)
      table_.fixed_of_unit[unit].push_back(static_cast<int>(table_.fixed_bytes.size()));
    table_.fixed_bytes.push_back(bytes);
    table_.reduction_bytes.push_back(reduction_bytes);
  }

  /// Loads are left out: what is read from the data is there when its task begins.
  void read_task(TaskKind kind, size_t begin, size_t end) {
    const std::vector<const Run*> wanted_by = next_runs(begin, end, /*skip_recompute=*/true);
    const std::vector<const Run*> next = next_runs(begin, end, /*skip_recompute=*/false);
    const Run* last = nullptr;
    for (size_t i = begin; i < end; ++i) {
      const bool is_run = run_at(i) != nullptr;
      std::vector<BufferId> buffers = touched(instruction(i));
      std::erase_if(buffers, [&](BufferId id) { return is_fixed_[id]; });
      if (is_run) last = run_at(i);
      if (buffers.empty() || std::holds_alternative<Load>(instruction(i))) continue;
      const Run* run =
          is_run || belongs_to(last, buffers) || !next[i - begin] ? last : next[i - begin];
      if (!run) continue;
      const bool is_again = run->phase == Phase::kRecompute && wanted_by[i - begin];
      const Run* wanted = is_again ? wanted_by[i - begin] : run;
      const auto* copy = std::get_if<Copy>(&instruction(i));
      const BufferId sum = copy && copy->combine == Combine::kAdd ? copy->to.buffer : -1;
      touches_.push_back({kind, unit_of(*run), unit_of(*wanted), sum, std::move(buffers)});
    }
  }

  /// From each instruction on: the first that runs a node.
  std::vector<const Run*> next_runs(size_t begin, size_t end, bool skip_recompute) const {
    std::vector<const Run*> runs(end - begin, nullptr);
    const Run* next = nullptr;
    for (size_t i = end; i-- > begin;) {
      const Run* run = run_at(i);
      if (run && !(skip_recompute && run->phase == Phase::kRecompute)) next = run;
      runs[i - begin] = next;
    }
    return runs;
  }

  /// What goes on with a node's buffers right after it has run is still its business; all else
  /// prepares the next.
  static bool belongs_to(const Run* run, const std::vector<BufferId>& touched) {
    if (!run) return false;
    return std::any_of(run->arguments.begin(), run->arguments.end(), [&](const Argument& argument) {
      return std::find(touched.begin(), touched.end(), argument.view.buffer) != touched.end();
    });
  }

  /// Where what is added to a gradient comes from another rank, it is added when the gradient is
  /// used.
  void arrange() {
    std::vector<int> last_user(program_.buffers.size(), kNoUnit);
    for (const Touches& each : touches_)
      for (BufferId id : each.buffers) last_user[id] = each.unit;
    for (Touches& each : touches_) {
      std::vector<Step>& steps = steps_of(each.kind, each.done_for);
      const int user = each.sum >= 0 ? last_user[each.sum] : each.unit;
      for (BufferId id : each.buffers) use(id, each, user);
      if (user == each.unit) {
        steps.push_back({std::move(each.buffers), each.unit, kNoUnit});
      } else {
        steps_of(each.kind, user).push_back({each.buffers, kNoUnit, each.unit});
        steps.push_back({std::move(each.buffers), user, kNoUnit});
      }
    }
    for (const Instruction& each : program_.instructions)
      if (const auto* load = std::get_if<Load>(&each))
        table_.buffers[load->to.buffer].made_by = kNoUnit;
    for (StepBuffer& buffer : table_.buffers)
      if (buffer.from_start) buffer.made_by = kNoUnit;
  }

  std::vector<Step>& steps_of(TaskKind kind, int unit) {
    return table_.steps[static_cast<size_t>(kind)][unit];
  }

  void use(BufferId id, const Touches& touches, int user) {
    StepBuffer& buffer = table_.buffers[id];
    if (buffer.units.empty()) {
      buffer.made_by = touches.unit;
      buffer.made_for = touches.done_for;
      buffer.made_forward = touches.kind == TaskKind::kForward;
    }
    if (std::find(buffer.units.begin(), buffer.units.end(), user) == buffer.units.end())
      buffer.units.push_back(user);
  }

  /// A value's buffer that is made in backward, with the name and box of one from forward, holds
  /// the same numbers again.
  void find_recomputed() {
    std::map<std::pair<std::string, std::vector<int64_t>>, int> first;
    for (int id = 0; id < static_cast<int>(table_.buffers.size()); ++id) {
      const Buffer& buffer = program_.buffers[id];
      if (buffer.kind != BufferKind::kValue || table_.buffers[id].units.empty()) continue;
      std::vector<int64_t> corners;
      for (int axis = 0; axis < buffer.box.num_axes(); ++axis)
        corners.insert(corners.end(), {buffer.box[axis].begin, buffer.box[axis].end});
      const auto [entry, is_new] = first.try_emplace({buffer.name, corners}, id);
      if (!is_new && !table_.buffers[id].made_forward)
        table_.buffers[id].first_made = entry->second;
    }
  }

  const Graph& graph_;
  const Program& program_;
  const BalanceOptions& options_;
  const std::vector<int> unit_of_node_;
  std::vector<bool> is_fixed_;    // per buffer
  std::vector<Touches> touches_;  // of the first micro-batch
  StepTable table_;
};

}  // namespace

StepTable read_steps(const Graph& graph, const Plan& plan, const BalanceOptions& options,
                     const std::vector<int64_t>& grid, const std::vector<NodeId>& places) {
  const LoweredStages lowered = lower_stages(graph, one_stage(plan, grid), options);
  StepReader reader(lowered.graph, lowered.programs[0], options,
                    unit_of_nodes(lowered.graph, graph, places),
                    static_cast<int>(places.size()) - 1);
  return reader.read();
}

}  // namespace tessera
