#include "tessera/graph/domains.h"

#include <fmt/format.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/graph/transform.h"

namespace tessera {
namespace {

bool feeds_network(const Graph& graph, ValueId input) {
  const std::vector<Use>& uses = graph.value(input).uses;
  return graph.type(input).element == Element::kReal &&
         std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
           return graph.node(use.node).op->differentiable(use.input);
         });
}

/// Per value: whether it can be computed without the images of domains after the first, and
/// whether it depends on a target.
struct Sources {
  explicit Sources(const Graph& graph)
      : of_source(graph.values().size(), true), of_targets(graph.values().size(), false) {
    const std::vector<ValueId> images = image_inputs(graph);
    for (ValueId input : graph.inputs()) of_targets[input] = true;
    for (ValueId image : images) {
      of_source[image] = image == images[0];
      of_targets[image] = false;
    }
    for (const Node& node : graph.nodes())
      for (ValueId input : node.inputs) {
        of_source[node.output] = of_source[node.output] && of_source[input];
        of_targets[node.output] = of_targets[node.output] || of_targets[input];
      }
  }
  std::vector<bool> of_source;
  std::vector<bool> of_targets;
};

}  // namespace

std::vector<ValueId> image_inputs(const Graph& graph) {
  std::vector<ValueId> images;
  for (ValueId input : graph.inputs())
    if (feeds_network(graph, input)) images.push_back(input);
  return images;
}

int domain_of_input(const Graph& graph, ValueId input) {
  const std::vector<ValueId> images = image_inputs(graph);
  const auto found = std::find(images.begin(), images.end(), input);
  return found == images.end() ? 0 : static_cast<int>(found - images.begin());
}

std::vector<int> domains_of_nodes(const Graph& graph) {
  const std::vector<ValueId> images = image_inputs(graph);
  std::vector<int> of_value(graph.values().size(), -1), of_node;
  for (size_t domain = 0; domain < images.size(); ++domain)
    of_value[images[domain]] = static_cast<int>(domain);
  for (const Node& node : graph.nodes()) {
    int last = -1;
    for (ValueId input : node.inputs) last = std::max(last, of_value[input]);
    of_value[node.output] = last;
    of_node.push_back(last);
  }
  return of_node;
}

Graph labelled_task(const Graph& graph) {
  if (image_inputs(graph).size() < 2) return graph;
  const Sources sources(graph);
  for (ValueId output : graph.outputs())
    TESSERA_CHECK(sources.of_source[output], "output {} depends on an image without labels",
                  graph.value(output).name);
  const auto drop = [&](Graph&, const Node& node, const std::vector<ValueId>&) {
    const bool stays =
        sources.of_source[node.output] && (!node.op->is_loss() || sources.of_targets[node.output]);
    return stays ? std::optional<ValueId>() : std::optional<ValueId>(-1);
  };
  return prune(transform(graph, drop, UnreadInputs::kDrop), Losses::kKeep);
}

Graph without_labelled_losses(const Graph& graph) {
  if (image_inputs(graph).size() < 2) return prune(graph, Losses::kDrop);
  const Sources sources(graph);
  const auto drop = [&](Graph&, const Node& node, const std::vector<ValueId>&) {
    return sources.of_targets[node.output] ? std::optional<ValueId>(-1) : std::nullopt;
  };
  return transform(graph, drop, UnreadInputs::kDrop);
}

}  // namespace tessera
