#include <utility>

#include "tessera/planner/balance_walk.h"

namespace tessera {

void StageWalk::forward_task(const NodeRange& part, int task) {
  for (NodeId node = part.begin; node < part.end; ++node)
    for (const RankReading& reading : graph_.nodes[node].readings) receive_input(reading, task);
  lives_.tick();
  for (NodeId node = part.begin; node < part.end; ++node) load_inputs(node);
  for (NodeId node = part.begin; node < part.end; ++node) forward(node);
  end_task();
}

void StageWalk::receive_input(const RankReading& reading, int task) {
  if (is_made_here(reading.value)) return;
  GroupState& group = state(reading.value, reading.group);
  if (std::exchange(group.has_arrived, true)) return;
  const RankValue& value = graph_.values[reading.value];
  const double bytes = value.groups[reading.group].sent_bytes;
  lives_.touch(group_slot(reading.value, reading.group, kStrip), bytes);
  result_.arrivals.push_back({value.origin, task, bytes});
}

/// Targets of several micro-batches have been there from the start.
void StageWalk::load_inputs(NodeId id) {
  const RankNode& node = graph_.nodes[id];
  if (node.is_loss && micro_batches_ > 1) return;
  for (const RankReading& reading : node.readings) {
    const RankValue& value = graph_.values[reading.value];
    if (!value.is_input || value.origin != id) continue;
    touch_home(reading.value);
    lives_.tick();
    make_groups(reading.value, false);
  }
}

void StageWalk::forward(NodeId id) {
  const RankNode& node = graph_.nodes[id];
  for (const RankReading& reading : node.readings)
    if (!is_made_here(reading.value) &&
        !std::exchange(state(reading.value, reading.group).is_unpacked, true))
      unpack(reading.value, reading.group);
  for (const RankReading& reading : node.readings)
    if (!(node.is_loss && micro_batches_ > 1 && graph_.values[reading.value].is_input))
      touch_input(reading);
  if (node.saved_bytes > 0) lives_.touch(value_slot(node.output, kSaved), node.saved_bytes);
  if (node.stores_output) touch_home(node.output);
  lives_.tick();
  if (node.stores_output) make_groups(node.output, false);
}

/// Copies for the groups that cannot read the home; for a value that was computed again only for
/// those that backward reads.
void StageWalk::make_groups(ValueId value, bool again) {
  const RankValue& entry = graph_.values[value];
  for (int group = 0; group <= entry.direct_group(); ++group) {
    if (!again && is_read_elsewhere(value, group)) send_value(value, group);
    if (group == home_group(value) || group == entry.direct_group()) continue;
    if (!is_read_here(value, group) || (again && !backward_reads(value, group))) continue;
    touch_home(value);
    touch_buffer(value, group);
    lives_.tick();
  }
}

/// A home without margins travels itself, one with margins is packed.
void StageWalk::send_value(ValueId value, int group) {
  const RankValue& entry = graph_.values[value];
  touch_home(value);
  const double home_bytes = entry.groups[home_group(value)].need_bytes;
  const double sent_bytes = entry.groups[group].sent_bytes;
  if (home_bytes == sent_bytes)
    send(value_slot(value, kHome), home_bytes);
  else
    send(group_slot(value, group, kSentStrip), sent_bytes);
  lives_.tick();
}

/// Where a message is not the buffer itself, both are there for a moment.
void StageWalk::unpack(ValueId value, int group) {
  const RankGroup& sizes = graph_.values[value].groups[group];
  if (sizes.arrives_whole) return;
  lives_.touch(group_slot(value, group, kStrip), sizes.sent_bytes);
  touch_buffer(value, group);
  lives_.tick();
}

}  // namespace tessera
