#pragma once
// A graph's values and parameters as tests look them up.

#include <map>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

inline std::map<std::string, Shape> shapes_by_name(const Graph& graph) {
  std::map<std::string, Shape> shapes;
  for (const Value& value : graph.values()) shapes[value.name] = value.type.shape();
  return shapes;
}

inline std::map<std::string, Shape> parameters_by_name(const Graph& graph) {
  std::map<std::string, Shape> shapes;
  for (const Parameter& parameter : graph.parameters()) shapes[parameter.name] = parameter.shape;
  return shapes;
}

/// The names of what the node reads.
inline std::vector<std::string> inputs_of(const Graph& graph, const std::string& node_name) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes())
    if (node.name == node_name)
      for (ValueId input : node.inputs) names.push_back(graph.value(input).name);
  return names;
}

}  // namespace tessera
