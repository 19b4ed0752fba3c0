#include "tessera/inspect/dot.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/inspect/text.h"

namespace tessera {
namespace {

/// A quoted string. Graphviz reads backslashes in labels as commands, so they are doubled.
std::string quoted(const std::vector<std::string>& lines) {
  std::string result = "\"";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result += "\\n";
    for (const char character : printable(lines[i])) {
      if (character == '"' || character == '\\') result += '\\';
      result += character;
    }
  }
  return result + "\"";
}

std::string source_of(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  return producer < 0 ? fmt::format("input{}", value) : fmt::format("n{}", producer);
}

std::string node_line(const Graph& graph, NodeId id, const DrawingOptions& options) {
  const Node& node = graph.node(id);
  const bool is_output = std::ranges::count(graph.outputs(), node.output) > 0;
  return fmt::format("  n{} [label={}, fillcolor={}, color={}{}];\n", id,
                     quoted({node.name, describe(*node.op)}), quoted({fill_of(node, options)}),
                     quoted({family_of(*node.op).stroke}), is_output ? ", peripheries=2" : "");
}

}  // namespace

std::string to_dot(const Graph& graph, const DrawingOptions& options) {
  std::string text =
      "digraph tessera {\n"
      "  rankdir=TB;\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", fontsize=11];\n"
      "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#64748b\", fontcolor=\"#64748b\"];\n";
  if (!options.title.empty())
    text += fmt::format("  labelloc=t;\n  label={};\n", quoted({options.title, options.subtitle}));
  for (ValueId input : graph.inputs())
    text += fmt::format("  input{} [label={}, shape=ellipse, style=dashed];\n", input,
                        quoted({graph.value(input).name}));
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    text += node_line(graph, static_cast<NodeId>(id), options);
  for (size_t id = 0; id < graph.nodes().size(); ++id)
    for (ValueId input : graph.nodes()[id].inputs)
      text += fmt::format("  {} -> n{} [label={}];\n", source_of(graph, input), id,
                          quoted({to_string(graph.type(input))}));
  return text + "}\n";
}

}  // namespace tessera
