#include "tessera/graph/append.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

template <class Id>
std::vector<Id> of_graph(const std::vector<Id>& of_part, const std::vector<Id>& ids) {
  std::vector<Id> result;
  for (Id id : of_part) result.push_back(ids[id]);
  return result;
}

/// Gives the parameters of `graph` that stand for those of `part`.
std::vector<ParameterId> append_parameters(Graph& graph, const Graph& part,
                                           const std::string& prefix) {
  const auto known = std::ssize(graph.parameters());
  std::vector<ParameterId> ids;
  for (Parameter parameter : part.parameters()) {
    parameter.name = prefix + parameter.name;
    ids.push_back(graph.add_parameter(parameter));
  }
  for (Derivation derivation : part.derivations()) {
    derivation.result = ids[derivation.result];
    derivation.sources = of_graph(derivation.sources, ids);
    if (derivation.result >= known) graph.add_derivation(derivation);
  }
  return ids;
}

}  // namespace

std::vector<ValueId> append(Graph& graph, const Graph& part, ValueId input,
                            const std::string& prefix) {
  TESSERA_CHECK(part.inputs().size() == 1, "a part of a network has {} inputs",
                part.inputs().size());
  const std::vector<ParameterId> parameters = append_parameters(graph, part, prefix);
  std::vector<ValueId> values(part.values().size(), -1);
  values[part.inputs()[0]] = input;
  for (const Node& node : part.nodes())
    values[node.output] =
        graph.add_node(prefix + node.name, node.op, of_graph(node.inputs, values),
                       of_graph(node.parameters, parameters), of_graph(node.buffers, parameters));
  return of_graph(part.outputs(), values);
}

}  // namespace tessera
