#include "tessera/lower/keep.h"

#include "tessera/graph/gradient_flow.h"
#include "tessera/graph/step_numbers.h"

namespace tessera {
namespace {

std::vector<bool> values_with_gradient(const Graph& graph, const LowerOptions& options) {
  std::vector<bool> depends(graph.values().size(), false);
  for (ValueId input : graph.inputs())
    depends[input] = options.input_gradients && graph.type(input).element == Element::kReal;
  for (const Node& node : graph.nodes()) {
    depends[node.output] = graph.has_trainable(node) || gradient_measurement(*node.op) != nullptr;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (depends[node.inputs[i]] && node.op->differentiable(static_cast<int>(i)))
        depends[node.output] = true;
  }
  const std::vector<bool> feeds = feeds_loss(graph);
  for (size_t id = 0; id < depends.size(); ++id) depends[id] = depends[id] && feeds[id];
  return depends;
}

class RecomputeChoice {
 public:
  RecomputeChoice(const Graph& graph, BackwardValues* values) : graph_(graph), values_(values) {}

  /// Elements that must be kept so that `id` can be had in backward.
  int64_t cost(ValueId id) const {
    if (values_->required[id]) return 0;
    const int64_t whole = volume(id);
    return can_recompute(id) ? std::min(whole, cost_of_inputs(id)) : whole;
  }

  void decide(ValueId id) {
    if (!can_recompute(id) || cost_of_inputs(id) >= volume(id)) return;
    values_->recomputed[id] = true;
    for (ValueId input : graph_.node(graph_.value(id).producer).inputs) {
      if (values_->required[input]) continue;
      values_->required[input] = true;
      decide(input);
    }
  }

 private:
  int64_t volume(ValueId id) const { return Box::whole(graph_.type(id).shape()).volume(); }
  bool can_recompute(ValueId id) const {
    const NodeId producer = graph_.value(id).producer;
    if (producer < 0) return false;
    const Op& op = *graph_.node(producer).op;
    return op.cheap_to_recompute() && !op.keeps_output();
  }
  int64_t cost_of_inputs(ValueId id) const {
    int64_t total = 0;
    for (ValueId input : graph_.node(graph_.value(id).producer).inputs) total += cost(input);
    return total;
  }

  const Graph& graph_;
  BackwardValues* values_;
};

}  // namespace

BackwardValues analyse_backward(const Graph& graph, const LowerOptions& options) {
  const size_t num_values = graph.values().size();
  BackwardValues values{std::vector<bool>(num_values, false), std::vector<bool>(num_values, false),
                        std::vector<bool>(num_values, false)};
  if (options.step == StepKind::kForward) return values;
  values.needs_gradient = values_with_gradient(graph, options);
  for (const Node& node : graph.nodes()) {
    if (!values.needs_gradient[node.output]) continue;
    if (node.op->keeps_output()) values.required[node.output] = true;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.op->keeps_input(static_cast<int>(i))) values.required[node.inputs[i]] = true;
  }
  if (!options.recompute) return values;
  const std::vector<bool> initially = values.required;
  RecomputeChoice choice(graph, &values);
  for (const Node& node : graph.nodes())
    if (initially[node.output]) choice.decide(node.output);
  return values;
}

}  // namespace tessera
