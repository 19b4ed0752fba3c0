#include <tuple>
#include <utility>

#include "tessera/planner/balance_walk.h"

namespace tessera {

void StageWalk::backward_task(const NodeRange& part, int task) {
  for (NodeId node = part.begin; node < part.end; ++node) receive_gradients(node, task);
  lives_.tick();
  for (NodeId node = part.end - 1; node >= part.begin; --node) backward(node);
  end_task();
}

void StageWalk::weight_task(const NodeRange& part) {
  for (NodeId node = part.end - 1; node >= part.begin; --node) weight_gradient(node);
  end_task();
}

void StageWalk::receive_gradients(NodeId id, int task) {
  const ValueId value = graph_.nodes[id].output;
  for (int group = 0; group <= graph_.values[value].direct_group(); ++group) {
    const NodeId sender = gradient_sender(value, group);
    if (sender < 0) continue;
    const double bytes = graph_.values[value].groups[group].sent_bytes;
    lives_.touch(group_slot(value, group, kGradientStrip), bytes);
    result_.arrivals.push_back({sender, task, bytes});
  }
}

/// Makes a value that was not kept available again, with all that it is computed from.
void StageWalk::recompute(ValueId value) {
  const RankValue& entry = graph_.values[value];
  if (!entry.is_recomputed || values_[value].is_recomputed) return;
  if (!is_made_here(value)) {
    values_[value].is_recomputed = true;
    for (int group = 0; group <= entry.direct_group(); ++group)
      if (backward_reads(value, group)) unpack(value, group);
    return;
  }
  const RankNode& producer = graph_.nodes[entry.origin];
  for (const RankReading& reading : producer.readings) recompute(reading.value);
  values_[value].is_recomputed = true;
  for (const RankReading& reading : producer.readings) touch_input(reading);
  touch_home(value);
  lives_.tick();
  make_groups(value, true);
}

void StageWalk::backward(NodeId id) {
  const RankNode& node = graph_.nodes[id];
  if (!graph_.values[node.output].needs_gradient) return;
  for (const RankReading& reading : node.readings)
    if (reading.backward_reads) recompute(reading.value);
  if (!node.is_loss) complete_gradient(id);
  touch_backward_arguments(id);
  for (const RankReading& reading : node.readings)
    if (reading.passes_gradient) write_input_gradient(reading);
  lives_.tick();
  for (const RankReading& reading : node.readings)
    if (reading.passes_gradient && --state(reading.value, reading.group).pending_readings == 0)
      complete_group(reading.value, reading.group);
  if (weights_ == Weights::kInBackward) weight_gradient(id);
}

void StageWalk::weight_gradient(NodeId id) {
  const RankNode& node = graph_.nodes[id];
  if (!node.has_trainable || !graph_.values[node.output].needs_gradient) return;
  touch_backward_arguments(id);
  lives_.tick();
}

/// What came from other stages is added; a convolution wants the sum without margins.
void StageWalk::complete_gradient(NodeId id) {
  const ValueId value = graph_.nodes[id].output;
  const RankValue& entry = graph_.values[value];
  for (int group = 0; group <= entry.direct_group(); ++group)
    if (gradient_sender(value, group) >= 0)
      add_to_gradient(value, group_slot(value, group, kGradientStrip),
                      entry.groups[group].sent_bytes);
  touch_gradient(value);
  lives_.tick();
  if (!graph_.nodes[id].returns_dense || values_[value].gradient_bytes == entry.piece_bytes) return;
  touch_gradient(value);
  values_[value].gradient = value_slot(value, kDenseGradient);
  values_[value].gradient_bytes = entry.piece_bytes;
  touch_gradient(value);
  lives_.tick();
}

void StageWalk::touch_backward_arguments(NodeId id) {
  const RankNode& node = graph_.nodes[id];
  for (const RankReading& reading : node.readings) {
    const bool is_early =
        node.is_loss && micro_batches_ > 1 && graph_.values[reading.value].is_input;
    if (reading.backward_reads && !is_early) touch_input(reading);
  }
  if (node.keeps_output) touch_home(node.output);
  if (node.saved_bytes > 0) lives_.touch(value_slot(node.output, kSaved), node.saved_bytes);
  if (!node.is_loss) touch_gradient(node.output);
}

/// Into the shared buffer while there is none yet, and otherwise into one of its own.
void StageWalk::write_input_gradient(const RankReading& reading) {
  const RankValue& entry = graph_.values[reading.value];
  const double bytes = entry.groups[reading.group].need_bytes;
  const Slot part = group_slot(reading.value, reading.group, kGradientPart);
  if (is_made_here(reading.value) && reading.group == entry.direct_group()) {
    if (values_[reading.value].gradient >= 0) lives_.touch(part, bytes);
    return touch_gradient(reading.value);
  }
  Slot& shared = state(reading.value, reading.group).gradient;
  if (shared >= 0)
    lives_.touch(part, bytes);
  else
    shared = group_slot(reading.value, reading.group, kGradient);
  lives_.touch(shared, bytes);
}

/// All readings of a group have contributed.
void StageWalk::complete_group(ValueId value, int group) {
  const RankValue& entry = graph_.values[value];
  const RankGroup& sizes = entry.groups[group];
  const Slot shared = state(value, group).gradient;
  if (shared < 0) return;
  if (is_made_here(value)) {
    if (values_[value].gradient < 0 && sizes.covers_piece)
      std::tie(values_[value].gradient, values_[value].gradient_bytes) =
          std::pair(shared, sizes.need_bytes);
    else
      add_to_gradient(value, shared, sizes.need_bytes);
    return;
  }
  lives_.touch(shared, sizes.need_bytes);
  if (sizes.need_bytes == sizes.sent_bytes)
    send(shared, sizes.need_bytes);
  else
    send(group_slot(value, group, kSentGradientStrip), sizes.sent_bytes);
  lives_.tick();
}

/// A part that is all of a piece becomes the gradient where there is none yet.
void StageWalk::add_to_gradient(ValueId value, Slot part, double part_bytes) {
  ValueState& state = values_[value];
  lives_.touch(part, part_bytes);
  if (state.gradient < 0 && part_bytes == graph_.values[value].piece_bytes) {
    state.gradient = part;
    state.gradient_bytes = part_bytes;
  }
  touch_gradient(value);
  lives_.tick();
}

void StageWalk::touch_gradient(ValueId value) {
  ValueState& state = values_[value];
  if (state.gradient < 0) {
    state.gradient = value_slot(value, kGradientHome);
    state.gradient_bytes = graph_.values[value].piece_bytes;
  }
  lives_.touch(state.gradient, state.gradient_bytes);
}

}  // namespace tessera
