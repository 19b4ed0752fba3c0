#include "tessera/base/error.h"
#include "tessera/lower/emitter.h"

namespace tessera {
namespace {

/// The parts of `box` outside `image`, as disjoint boxes.
std::vector<Box> outside(Box box, const Box& image) {
  std::vector<Box> parts;
  for (int axis = 0; axis < box.num_axes(); ++axis) {
    const Range inside = intersect(box[axis], image[axis]);
    if (inside.empty()) {
      parts.push_back(box);
      return parts;
    }
    for (const Range& range :
         {Range{box[axis].begin, inside.begin}, Range{inside.end, box[axis].end}})
      if (!range.empty()) {
        parts.push_back(box);
        parts.back()[axis] = range;
      }
    box[axis] = inside;
  }
  return parts;
}

}  // namespace

void Emitter::load_input(ValueId value) {
  make_homes(value);
  for (int piece : pieces_here(value)) append(Load{value, home_view(value, piece)});
  make_groups(value);
}

void Emitter::emit_forward(NodeId id) {
  const Node& node = graph_.node(id);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int group = placed_.use(id, static_cast<int>(i)).group;
    if (group >= 0) finish_exchange(node.inputs[i], group);
  }
  const bool is_loss = node.op->is_loss();
  if (is_loss && placed_.num_micro_batches() > 1) return forward_loss(id);
  emit_statistics(id, Direction::kForward);
  if (node.op->output_access() != OutputAccess::kNone) make_homes(node.output);
  run_forward(id, Phase::kForward);
  make_groups(node.output);
  if (is_loss) start_loss_reduction();
}

void Emitter::make_homes(ValueId value) {
  const ValuePlan& plan = placed_.values[value];
  const NodeId producer = graph_.value(value).producer;
  const bool adopted =
      producer >= 0 && graph_.node(producer).op->output_access() == OutputAccess::kReturnsDense;
  for (int piece : pieces_here(value)) {
    const BufferId home =
        add_buffer(graph_.value(value).name, BufferKind::kValue, plan.home_boxes[piece],
                   plan.layout.piece(piece).box, element_of(value));
    program_.buffers[home].adopted = adopted;
    instances_[value].homes[piece] = home;
    fill_outside(home, value);
  }
}

/// Buffers of the consumers' groups, filled from the homes here and by transfers from elsewhere. A
/// rank that only receives makes its buffers when they arrive: until then their strips are enough.
void Emitter::make_groups(ValueId value) {
  const ValuePlan& plan = placed_.values[value];
  const bool recomputed = recomputed_[{value, micro_batch_}];
  for (int g = 0; g < static_cast<int>(plan.groups.size()); ++g) {
    if (!owns(value) && !reads(value, g)) continue;
    if (recomputed && !backward_reads(value, g)) continue;
    if (owns(value)) make_group_buffers(value, g);
    if (!recomputed)
      start_exchange(value, g);
    else
      unpack(value, g);
    copy_local_moves(value, g);
  }
}

void Emitter::make_group_buffers(ValueId value, int g) {
  const EdgeGroup& group = placed_.values[value].groups[g];
  const size_t count = group.needs.size() / placed_.num_micro_batches();
  for (size_t q = count * micro_batch_; q < count * (micro_batch_ + 1); ++q) {
    if (group.needs[q].rank != rank_ || group.needs[q].box.empty()) continue;
    BufferId& buffer = instances_[value].groups[g][q];
    if (buffer >= 0) continue;  // a strip that was taken over
    if (group.in_place[q]) {
      buffer = instances_[value].homes[q];
      continue;
    }
    buffer = add_buffer(graph_.value(value).name + " with margins", BufferKind::kValue,
                        group.needs[q].box, group.needs[q].box, element_of(value));
    fill_outside(buffer, value);
  }
}

bool Emitter::backward_reads(ValueId value, int group) const {
  const std::vector<Use>& uses = graph_.value(value).uses;
  for (size_t u = 0; u < uses.size(); ++u)
    if (placed_.values[value].uses[u].group == group &&
        (graph_.node(uses[u].node).op->keeps_input(uses[u].input) ||
         backward_.recomputed[graph_.node(uses[u].node).output]))
      return true;
  return false;
}

void Emitter::fill_outside(BufferId buffer, ValueId value) {
  std::vector<Box> parts =
      outside(program_.buffers[buffer].box, Box::whole(graph_.type(value).shape()));
  if (!parts.empty()) append(Fill{buffer, std::move(parts)});
}

void Emitter::copy_local_moves(ValueId value, int g) {
  const EdgeGroup& group = placed_.values[value].groups[g];
  for (const Move& move : group.moves_of(micro_batch_)) {
    if (move.from != rank_ || move.to != rank_ || group.moves_in_place(move)) continue;
    append(Copy{{instances_[value].homes[move.source_piece], move.box},
                {instances_[value].groups[g][move.need], move.box},
                Combine::kStore});
  }
}

void Emitter::run_forward(NodeId id, Phase phase) {
  const Node& node = graph_.node(id);
  for (int piece : pieces_here(node.output)) {
    const Box& box = placed_.output_layout(id).piece(piece).box;
    Run run{id, phase, piece, {box}, {}};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int input = static_cast<int>(i);
      run.arguments.push_back({Role::kInput, input, input_view(id, input, piece)});
    }
    if (const auto found = merged_statistics_.find(now(id)); found != merged_statistics_.end()) {
      const BufferId merged = found->second;
      run.arguments.push_back({Role::kMergedStatistics, 0, {merged, program_.buffers[merged].box}});
    }
    if (const Saved saved = node.op->saved(box, node.types); saved.numel > 0) {
      const Box flat{{0, saved.numel}};
      const BufferId buffer =
          add_buffer(node.name + " saved", BufferKind::kSaved, flat, flat,
                     saved.type == at::kByte ? ElementType::kByte : ElementType::kInt);
      saved_[{id, piece}] = buffer;
      run.arguments.push_back({Role::kSaved, 0, {buffer, flat}});
    }
    if (node.op->is_loss()) run.arguments.push_back({Role::kLoss, 0, {program_.loss, Box{{0, 1}}}});
    if (node.op->output_access() != OutputAccess::kNone)
      run.arguments.push_back({Role::kOutput, 0, home_view(node.output, piece)});
    append(std::move(run));
  }
}

/// Makes a value that was not kept available again, with all that it is computed from.
void Emitter::recompute(ValueId value) {
  if (!backward_.recomputed[value] || recomputed_[{value, micro_batch_}]) return;
  const NodeId producer = graph_.value(value).producer;
  if (!pieces_here(value).empty())
    for (ValueId input : graph_.node(producer).inputs) recompute(input);
  recomputed_[{value, micro_batch_}] = true;
  forget_instance(value);
  make_homes(value);
  run_forward(producer, Phase::kRecompute);
  make_groups(value);
}

View Emitter::home_view(ValueId value, int piece) const {
  return {instances_[value].homes[piece], placed_.values[value].layout.piece(piece).box};
}

View Emitter::input_view(NodeId node, int input, int piece) const {
  const UsePlan& use = placed_.use(node, input);
  const Instance& instance = instances_[graph_.node(node).inputs[input]];
  const Box& needed = use.needed[piece];
  if (needed.empty()) return {-1, needed};
  if (use.group >= 0) return {instance.groups[use.group][piece], needed};
  return {instance.homes[use.home_pieces[piece]], needed};
}

}  // namespace tessera
