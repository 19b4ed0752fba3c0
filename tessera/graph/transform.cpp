#include "tessera/graph/transform.h"

#include <algorithm>

namespace tessera {
namespace {

Graph copy(const Graph& graph, const std::vector<Parameter>& parameters, const ReplaceNode& replace,
           const std::vector<bool>& keep_input) {
  Graph result;
  std::vector<ValueId> ids(graph.values().size(), -1);
  for (const Parameter& parameter : parameters) result.add_parameter(parameter);
  for (const Derivation& derivation : graph.derivations())
    if (parameters[derivation.result].role == ParameterRole::kDerived)
      result.add_derivation(derivation);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId input = graph.inputs()[i];
    if (keep_input[i]) ids[input] = result.add_input(graph.value(input).name, graph.type(input));
  }
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(ids[input]);
    const std::optional<ValueId> replaced = replace(result, node, inputs);
    ids[node.output] =
        replaced ? *replaced
                 : result.add_node(node.name, node.op, inputs, node.parameters, node.buffers);
  }
  for (ValueId output : graph.outputs()) result.mark_output(ids[output]);
  return result;
}

Graph transform_with(const Graph& graph, const std::vector<Parameter>& parameters,
                     const ReplaceNode& replace, UnreadInputs unread) {
  std::vector<bool> keep(graph.inputs().size(), true);
  Graph result = copy(graph, parameters, replace, keep);
  if (unread == UnreadInputs::kKeep) return result;
  for (size_t i = 0; i < keep.size(); ++i) {
    const ValueId input = result.inputs()[i];
    const auto& outputs = result.outputs();  // a network may return what it was given
    keep[i] = !result.value(input).uses.empty() ||
              std::find(outputs.begin(), outputs.end(), input) != outputs.end();
  }
  return copy(graph, parameters, replace, keep);
}

/// The parameters, frozen where no live node reads them: an optimiser must not decay what has no
/// gradient.
std::vector<Parameter> freeze_unread(const Graph& graph, const std::vector<bool>& live) {
  std::vector<bool> read(graph.parameters().size(), false);
  for (const Node& node : graph.nodes())
    if (live[node.output])
      for (ParameterId id : node.parameters) read[id] = true;
  for (const Derivation& derivation : graph.derivations())
    for (ParameterId source : derivation.sources)
      if (read[derivation.result]) read[source] = true;
  std::vector<Parameter> parameters = graph.parameters();
  for (size_t id = 0; id < parameters.size(); ++id)
    if (!read[id] && graph.is_trained(static_cast<ParameterId>(id)))
      parameters[id].role = ParameterRole::kFrozen;
  return parameters;
}

}  // namespace

Graph transform(const Graph& graph, const ReplaceNode& replace, UnreadInputs unread) {
  return transform_with(graph, graph.parameters(), replace, unread);
}

Graph prune(const Graph& graph, Losses losses) {
  std::vector<bool> live(graph.values().size(), false);
  for (ValueId output : graph.outputs()) live[output] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op->is_loss()) live[node->output] = losses == Losses::kKeep;
    for (ParameterId id : node->buffers)
      if (graph.parameters()[id].role == ParameterRole::kBuffer) live[node->output] = true;
    if (!live[node->output]) continue;
    for (ValueId input : node->inputs) live[input] = true;
  }
  const auto drop_dead = [&](Graph&, const Node& node, const std::vector<ValueId>&) {
    return live[node.output] ? std::optional<ValueId>() : std::optional<ValueId>(-1);
  };
  return transform_with(graph, freeze_unread(graph, live), drop_dead,
                        losses == Losses::kDrop ? UnreadInputs::kDrop : UnreadInputs::kKeep);
}

}  // namespace tessera
