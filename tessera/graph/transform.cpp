#include "tessera/graph/transform.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {
namespace {

/// Inputs of several data sets may have batches of different sizes; without a size they stay.
ValueType of_batch(ValueType type, std::optional<int64_t> batch) {
  for (Axis& axis : type.axes)
    if (axis.kind == AxisKind::kBatch && batch) axis.size = *batch;
  return type;
}

std::optional<ValueId> plain_copy(Graph&, const Node&, const std::vector<ValueId>&) { return {}; }

/// `ids`: the values of `result` that stand for those of `graph`.
void copy_size_rules(const Graph& graph, const std::vector<ValueId>& ids, Graph* result) {
  for (size_t value = 0; value < ids.size(); ++value) {
    SizeRule rule = graph.values()[value].size_rule;
    if (rule.like < 0 || ids[value] < 0 || ids[rule.like] < 0) continue;
    rule.like = ids[rule.like];
    result->set_size_rule(ids[value], rule);
  }
}

/// In batches of `batch` samples, where that is given.
Graph copy(const Graph& graph, const std::vector<Parameter>& parameters, const ReplaceNode& replace,
           const std::vector<bool>& keep_input, std::optional<int64_t> batch = {}) {
  Graph result;
  std::vector<ValueId> ids(graph.values().size(), -1);
  for (const Parameter& parameter : parameters) result.add_parameter(parameter);
  for (const Derivation& derivation : graph.derivations())
    if (parameters[derivation.result].role == ParameterRole::kDerived)
      result.add_derivation(derivation);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId input = graph.inputs()[i];
    if (keep_input[i])
      ids[input] = result.add_input(graph.value(input).name, of_batch(graph.type(input), batch));
  }
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(ids[input]);
    const std::optional<ValueId> replaced = replace(result, node, inputs);
    ids[node.output] =
        replaced ? *replaced
                 : result.add_node(node.name, node.op, inputs, node.parameters, node.buffers);
  }
  copy_size_rules(graph, ids, &result);
  for (ValueId output : graph.outputs()) result.mark_output(ids[output]);
  return result;
}

/// Of all inputs; 0 where there are none.
int64_t batch_of(const Graph& graph) {
  return graph.inputs().empty() ? 0 : graph.type(graph.inputs()[0]).batch();
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

/// Per value: whether it can be computed from the inputs that the outputs depend on. Without losses
/// the images of other domains are not read, and norms that they pass have nothing to go by.
std::vector<bool> values_of_outputs_inputs(const Graph& graph) {
  std::vector<bool> wanted(graph.values().size(), false), known(graph.values().size(), false);
  for (ValueId output : graph.outputs()) wanted[output] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
    for (ValueId input : node->inputs)
      if (wanted[node->output]) wanted[input] = true;
  for (ValueId input : graph.inputs()) known[input] = wanted[input];
  for (const Node& node : graph.nodes())
    known[node.output] = std::all_of(node.inputs.begin(), node.inputs.end(),
                                     [&](ValueId input) { return known[input]; });
  return known;
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

Graph with_batch(const Graph& graph, int64_t batch) {
  const std::vector<bool> keep(graph.inputs().size(), true);
  Graph result = copy(graph, graph.parameters(), plain_copy, keep, batch);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const ValueType& old = graph.nodes()[i].types.output;
    const ValueType& now = result.nodes()[i].types.output;
    if (now != of_batch(old, batch))
      throw_error<InvalidInput>(
          "[{}] makes {} of a batch of {}, and {} of one of {}: it works for one batch size only",
          graph.nodes()[i].name, to_string(old), batch_of(graph), to_string(now), batch);
  }
  return result;
}

Graph with_frozen(const Graph& graph, const std::function<bool(const Parameter&)>& chosen) {
  std::vector<Parameter> parameters = graph.parameters();
  for (Parameter& parameter : parameters)
    if (parameter.role == ParameterRole::kTrainable && chosen(parameter))
      parameter.role = ParameterRole::kFrozen;
  return transform_with(graph, parameters, plain_copy, UnreadInputs::kKeep);
}

Graph prune(const Graph& graph, Losses losses) {
  std::vector<bool> live(graph.values().size(), false);
  for (ValueId output : graph.outputs()) live[output] = true;
  const std::vector<bool> is_read = losses == Losses::kDrop
                                        ? values_of_outputs_inputs(graph)
                                        : std::vector<bool>(graph.values().size(), true);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op->is_loss()) live[node->output] = losses == Losses::kKeep;
    for (ParameterId id : node->buffers)
      if (graph.parameters()[id].role == ParameterRole::kBuffer && is_read[node->output])
        live[node->output] = true;
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
