#include "tessera/planner/balance_walk.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

/// The first slot of each value, and the number of all.
std::vector<Slot> number_slots(const RankGraph& graph, int per_value, int per_group) {
  std::vector<Slot> first{0};
  for (const RankValue& value : graph.values)
    first.push_back(first.back() + per_value + per_group * static_cast<int>(value.groups.size()));
  return first;
}

}  // namespace

StageWalk::StageWalk(const RankGraph& graph, int64_t micro_batches, Weights weights)
    : graph_(graph),
      micro_batches_(micro_batches),
      weights_(weights),
      first_slot_(number_slots(graph, kValueSlots, kGroupSlots)),
      first_group_(number_slots(graph, 0, 1)),
      lives_(first_slot_.back()),
      is_here_(graph.nodes.size(), false),
      values_(graph.values.size()),
      groups_(first_group_.back()),
      parameter_counted_(graph.parameter_bytes.size(), 0) {}

const StageProfile& StageWalk::profile(const std::vector<NodeRange>& parts) {
  forget_last();
  enter(parts);
  const int num_parts = static_cast<int>(parts.size());
  for (int i = 0; i < num_parts; ++i) forward_task(parts[i], i);
  for (int i = num_parts - 1; i >= 0; --i) backward_task(parts[i], 2 * num_parts - 1 - i);
  if (weights_ == Weights::kApart)
    for (int i = num_parts - 1; i >= 0; --i) weight_task(parts[i]);
  lives_.measure(&result_.peak, &result_.level);
  split_off_weights();
  return result_;
}

/// The tasks after the last backward are weight gradients, of the last part first.
void StageWalk::split_off_weights() {
  const size_t num_parts = parts_.size();
  result_.weight_bytes.assign(num_parts, 0);
  for (size_t task = 2 * num_parts; task < result_.level.size(); ++task)
    result_.weight_bytes[3 * num_parts - 1 - task] = result_.level[task - 1] - result_.level[task];
  result_.peak.resize(2 * num_parts);
  result_.level.resize(2 * num_parts);
}

void StageWalk::forget_last() {
  const auto forget = [&](ValueId value) {
    values_[value] = {};
    std::fill(groups_.begin() + first_group_[value], groups_.begin() + first_group_[value + 1],
              GroupState());
  };
  for (const NodeRange& part : parts_)
    for (NodeId node = part.begin; node < part.end; ++node) {
      is_here_[node] = false;
      forget(graph_.nodes[node].output);
      for (const RankReading& reading : graph_.nodes[node].readings) forget(reading.value);
    }
  lives_.reset();
  result_.fixed_bytes = 0;
  result_.arrivals.clear();
  ++num_profiles_;
}

void StageWalk::enter(const std::vector<NodeRange>& parts) {
  parts_ = parts;
  for (const NodeRange& part : parts)
    for (NodeId node = part.begin; node < part.end; ++node) {
      is_here_[node] = true;
      add_fixed_bytes(node);
      for (const RankReading& reading : graph_.nodes[node].readings)
        if (reading.passes_gradient) ++state(reading.value, reading.group).pending_readings;
    }
}

void StageWalk::add_fixed_bytes(NodeId id) {
  const RankNode& node = graph_.nodes[id];
  for (ParameterId parameter : node.parameters)
    if (std::exchange(parameter_counted_[parameter], num_profiles_) != num_profiles_)
      result_.fixed_bytes += graph_.parameter_bytes[parameter];
  if (!node.is_loss || micro_batches_ == 1) return;
  for (const RankReading& reading : node.readings)
    if (graph_.values[reading.value].is_input)
      result_.fixed_bytes +=
          static_cast<double>(micro_batches_) * graph_.values[reading.value].piece_bytes;
}

void StageWalk::end_task() {
  if (micro_batches_ > 1) touch_sent();
  lives_.end_task();
  if (micro_batches_ == 1) touch_sent();
}

/// What is sent stays until the rank comes back to work: for another micro-batch, soon after this
/// task; where there is only one, for the next task of this one.
void StageWalk::touch_sent() {
  for (const auto& [slot, bytes] : sent_) lives_.touch(slot, bytes);
  sent_.clear();
}

void StageWalk::send(Slot slot, double bytes) {
  lives_.touch(slot, bytes);
  sent_.emplace_back(slot, bytes);
}

template <class Predicate>
bool StageWalk::has_reading(ValueId value, int group, Predicate predicate) const {
  for (NodeId node : graph_.readers[value])
    for (const RankReading& reading : graph_.nodes[node].readings)
      if (reading.value == value && reading.group == group && predicate(node, reading)) return true;
  return false;
}

bool StageWalk::is_read_here(ValueId value, int group) const {
  return has_reading(value, group, [&](NodeId node, const RankReading&) { return is_here_[node]; });
}

bool StageWalk::is_read_elsewhere(ValueId value, int group) const {
  return has_reading(value, group,
                     [&](NodeId node, const RankReading&) { return !is_here_[node]; });
}

bool StageWalk::backward_reads(ValueId value, int group) const {
  return has_reading(value, group, [&](NodeId node, const RankReading& reading) {
    return is_here_[node] &&
           (reading.backward_reads || graph_.values[graph_.nodes[node].output].is_recomputed);
  });
}

/// The node after the stage whose backward sends a gradient of this value; -1: none does.
NodeId StageWalk::gradient_sender(ValueId value, int group) const {
  NodeId sender = -1;
  has_reading(value, group, [&](NodeId node, const RankReading& reading) {
    if (!is_here_[node] && reading.passes_gradient) sender = node;
    return sender >= 0;
  });
  return sender;
}

/// The group that lower/edges.cpp would choose, among those that are read here. The last is the
/// direct one.
int StageWalk::home_group(ValueId value) {
  int& chosen = values_[value].home_group;
  if (chosen >= 0) return chosen;
  const RankValue& entry = graph_.values[value];
  chosen = entry.direct_group();
  for (int group = 0; group < entry.direct_group(); ++group)
    if (entry.groups[group].may_be_home && is_read_here(value, group)) return chosen = group;
  return chosen;
}

void StageWalk::touch_home(ValueId value) {
  const ValueSlot slot = values_[value].is_recomputed ? kHomeAgain : kHome;
  lives_.touch(value_slot(value, slot), graph_.values[value].groups[home_group(value)].need_bytes);
}

void StageWalk::touch_buffer(ValueId value, int group) {
  const RankValue& entry = graph_.values[value];
  const RankGroup& sizes = entry.groups[group];
  if (is_made_here(value)) {
    if (group == home_group(value) || group == entry.direct_group()) return touch_home(value);
  } else if (sizes.arrives_whole) {
    return lives_.touch(group_slot(value, group, kStrip), sizes.sent_bytes);
  }
  const GroupSlot slot = values_[value].is_recomputed ? kBufferAgain : kBuffer;
  lives_.touch(group_slot(value, group, slot), sizes.need_bytes);
}

}  // namespace tessera
