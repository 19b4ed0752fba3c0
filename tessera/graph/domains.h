#pragma once
// A network for several domains reads an image of each. Its first image is the source's, the one
// that has labels; what is learned from these is a network by itself.

#include <string>
#include <vector>

#include "tessera/base/domain_names.h"
#include "tessera/graph/graph.h"

namespace tessera {

/// The inputs that are images, and not only targets of losses: one for each domain, in their order.
std::vector<ValueId> image_inputs(const Graph& graph);

/// Which domain an input belongs to, by the order of the images; targets are the source's, 0.
int domain_of_input(const Graph& graph, ValueId input);

/// For every node, the last domain that it depends on; -1: none.
std::vector<int> domains_of_nodes(const Graph& graph);

/// What the graph computes from the source's image, with the losses that look at its targets: the
/// network that is validated. A graph with one image stays as it is. Parameters keep their order.
Graph labelled_task(const Graph& graph);

/// The graph without the losses that look at targets, and without these: another loss is to take
/// their place. A graph with one image has no loss then, and nothing that only losses read.
Graph without_labelled_losses(const Graph& graph);

}  // namespace tessera
