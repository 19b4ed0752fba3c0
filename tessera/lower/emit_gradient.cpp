#include "tessera/base/error.h"
#include "tessera/lower/emitter.h"

// The gradient of a value is the sum over its readings. The first contribution whose buffer holds
// the whole piece becomes the gradient's home, margins and all; later ones are added to its
// interior. What a reading contributed outside its own piece travels back to the owners by the
// transfer's adjoint.

namespace tessera {

void Emitter::prepare_gradients() {
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
    const Node& node = graph_.node(id);
    for (int input = 0; input < static_cast<int>(node.inputs.size()); ++input) {
      const UsePlan& use = placed_.use(id, input);
      if (use.group < 0 || !passes_gradient(id, input)) continue;
      for (int m = 0; m < placed_.num_micro_batches(); ++m)
        ++pending_readings_[{node.inputs[input], use.group, m}];
      std::vector<bool>& contributes = contributes_[{node.inputs[input], use.group}];
      contributes.resize(use.needed.size(), false);
      for (size_t q = 0; q < use.needed.size(); ++q)
        if (!use.needed[q].empty()) contributes[q] = true;
    }
  }
}

/// Where a kernel writes its gradient: the home or the group's buffer while there is none yet, and
/// otherwise a buffer of its own.
View Emitter::gradient_target(NodeId id, int input, int piece) {
  const Node& node = graph_.node(id);
  const ValueId value = node.inputs[input];
  const UsePlan& use = placed_.use(id, input);
  const bool dense = node.op->input_access(input) == InputAccess::kDense;
  const Box& needed = use.needed[piece];
  BufferId& shared = use.group >= 0 ? gradients_[value].groups[use.group][piece]
                                    : gradients_[value].homes[use.home_pieces[piece]];
  const std::string name = graph_.value(value).name + " gradient";
  if (shared >= 0) {
    const BufferId own = add_buffer(name + " part", BufferKind::kGradient, needed, needed);
    program_.buffers[own].adopted = dense;
    return {own, needed};
  }
  const ValuePlan& plan = placed_.values[value];
  const Box& box = use.group >= 0 ? plan.groups[use.group].needs[piece].box
                                  : plan.layout.piece(use.home_pieces[piece]).box;
  shared = add_buffer(name, BufferKind::kGradient, box, box);
  if (dense)
    program_.buffers[shared].adopted = true;
  else if (!(needed == box))
    fill(shared);
  return {shared, needed};
}

void Emitter::add_contribution(NodeId id, int input, int piece, const View& target) {
  const ValueId value = graph_.node(id).inputs[input];
  const UsePlan& use = placed_.use(id, input);
  const BufferId shared = use.group >= 0 ? gradients_[value].groups[use.group][piece]
                                         : gradients_[value].homes[use.home_pieces[piece]];
  if (target.buffer != shared) append(Copy{target, {shared, target.box}, Combine::kAdd});
}

void Emitter::reading_done(NodeId id, int input) {
  const ValueId value = graph_.node(id).inputs[input];
  const int group = placed_.use(id, input).group;
  if (group >= 0 && --pending_readings_[edge(value, group)] == 0) complete_group(value, group);
}

/// All readings of a group have contributed: own parts are added here, the rest goes to its owners.
void Emitter::complete_group(ValueId value, int g) {
  const EdgeGroup& group = placed_.values[value].groups[g];
  Instance& gradient = gradients_[value];
  for (int piece : pieces_here(value))
    if (gradient.homes[piece] < 0 && piece < static_cast<int>(group.needs.size()) &&
        group.covers_piece[piece])
      gradient.homes[piece] = gradient.groups[g][piece];
  for (const Move& move : group.moves_of(micro_batch_)) {
    if (move.from != rank_ || move.to != rank_ || !contributes(value, g, move)) continue;
    const BufferId part = gradient.groups[g][move.need];
    const BufferId home = gradient_home(value, move.source_piece);
    if (part == home && move.source_piece == move.need) continue;
    append(Copy{{part, move.box}, {home, move.box}, Combine::kAdd});
  }
  start_adjoint(value, g);
}

/// Whether any reading has a gradient for the need of a move. A need may be there for others only:
/// a crop that reads nothing of it, beside a convolution that feeds no loss. Asked on both ends.
bool Emitter::contributes(ValueId value, int group, const Move& move) const {
  return contributes_.at({value, group})[move.need];
}

void Emitter::complete_gradient(ValueId value) {
  std::vector<int>& started = started_adjoints_[{value, micro_batch_}];
  for (int group : started) finish_adjoint(value, group);
  started.clear();
  for (int piece : pieces_here(value)) gradient_home(value, piece);
}

BufferId Emitter::gradient_home(ValueId value, int piece) {
  BufferId& home = gradients_[value].homes[piece];
  if (home >= 0) return home;
  const Box& box = placed_.values[value].layout.piece(piece).box;
  home = add_buffer(graph_.value(value).name + " gradient", BufferKind::kGradient, box, box);
  fill(home);
  return home;
}

}  // namespace tessera
