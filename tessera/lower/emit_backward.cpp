#include "tessera/base/error.h"
#include "tessera/lower/emitter.h"

namespace tessera {

void Emitter::emit_backward(NodeId id, bool with_weights) {
  const Node& node = graph_.node(id);
  if (!backward_.needs_gradient[node.output]) return;
  // Recomputation comes first: it hides the adjoint exchange that complete_gradient waits for.
  for (size_t i = 0; i < node.inputs.size() && !pieces_here(node.output).empty(); ++i)
    if (node.op->keeps_input(static_cast<int>(i))) recompute(node.inputs[i]);
  if (!node.op->is_loss() && runs(id)) {
    complete_gradient(node.output);
    if (node.op->output_access() == OutputAccess::kReturnsDense) make_grad_output_dense(id);
  }
  emit_statistics(id, Direction::kBackward);
  run_input_gradient(id);
  if (with_weights || node.op->weight_gradient_from_statistics()) emit_weight_gradient(id);
}

bool Emitter::passes_gradient(NodeId id, int input) const {
  const Node& node = graph_.node(id);
  return backward_.needs_gradient[node.output] && backward_.needs_gradient[node.inputs[input]] &&
         node.op->differentiable(input);
}

void Emitter::run_input_gradient(NodeId id) {
  const Node& node = graph_.node(id);
  for (int piece : pieces_here(node.output)) {
    Run run{id,
            Phase::kInputGradient,
            piece,
            {placed_.output_layout(id).piece(piece).box},
            backward_arguments(id, piece)};
    std::vector<std::pair<int, View>> targets;
    for (int input = 0; input < static_cast<int>(node.inputs.size()); ++input)
      if (passes_gradient(id, input) && !placed_.use(id, input).needed[piece].empty())
        targets.emplace_back(input, gradient_target(id, input, piece));
    if (targets.empty()) continue;
    for (const auto& [input, target] : targets)
      run.arguments.push_back({Role::kGradInput, input, target});
    append(std::move(run));
    for (const auto& [input, target] : targets) add_contribution(id, input, piece, target);
  }
  for (int input = 0; input < static_cast<int>(node.inputs.size()); ++input)
    if (passes_gradient(id, input)) reading_done(id, input);
}

void Emitter::emit_weight_gradient(NodeId id) {
  const Node& node = graph_.node(id);
  if (!backward_.needs_gradient[node.output] || !graph_.has_trainable(node)) return;
  for (int piece : pieces_here(node.output))
    append(Run{id,
               Phase::kWeightGradient,
               piece,
               {placed_.output_layout(id).piece(piece).box},
               backward_arguments(id, piece)});
  contributed(node);
}

std::vector<Argument> Emitter::backward_arguments(NodeId id, int piece) const {
  const Node& node = graph_.node(id);
  std::vector<Argument> arguments;
  for (int input = 0; input < static_cast<int>(node.inputs.size()); ++input)
    if (node.op->keeps_input(input))
      arguments.push_back({Role::kInput, input, input_view(id, input, piece)});
  if (node.op->keeps_output())
    arguments.push_back({Role::kOutput, 0, home_view(node.output, piece)});
  if (!node.op->is_loss()) arguments.push_back({Role::kGradOutput, 0, grad_output(id, piece)});
  const auto whole = [&](BufferId buffer) { return View{buffer, program_.buffers[buffer].box}; };
  if (const auto found = saved_.find({id, piece}); found != saved_.end())
    arguments.push_back({Role::kSaved, 0, whole(found->second)});
  if (const auto found = merged_statistics_.find(now(id)); found != merged_statistics_.end())
    arguments.push_back({Role::kMergedStatistics, 0, whole(found->second)});
  if (const auto found = grad_statistics_rows_.find({id, piece});
      found != grad_statistics_rows_.end())
    arguments.push_back({Role::kPieceGradStatistics, 0, found->second});
  if (const auto found = merged_grad_statistics_.find(now(id));
      found != merged_grad_statistics_.end())
    arguments.push_back({Role::kMergedGradStatistics, 0, whole(found->second)});
  return arguments;
}

View Emitter::grad_output(NodeId id, int piece) const {
  const Box& box = placed_.output_layout(id).piece(piece).box;
  const auto dense = dense_grad_outputs_.find({id, piece});
  if (dense != dense_grad_outputs_.end()) return {dense->second, box};
  return {gradients_[graph_.node(id).output].homes[piece], box};
}

/// Convolutions read a whole dense gradient; where it lies inside margins (two convolutions without
/// anything between), this is a counted copy.
void Emitter::make_grad_output_dense(NodeId id) {
  for (int piece : pieces_here(graph_.node(id).output)) {
    const View view = grad_output(id, piece);
    if (program_.buffers[view.buffer].box == view.box) continue;
    const BufferId dense = add_buffer(graph_.node(id).name + " dense gradient",
                                      BufferKind::kGradient, view.box, view.box);
    append(Copy{view, {dense, view.box}, Combine::kStore});
    dense_grad_outputs_[{id, piece}] = dense;
  }
}

}  // namespace tessera
