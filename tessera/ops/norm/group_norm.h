#pragma once
// Group normalisation: each sample on its own, in groups of neighbouring channels over all of
// space. It needs no large batch, which is why networks for large images prefer it to batch norm.
//
// Example:
//   ValueId y = group_norm(graph, x, "enc1.gn1", {.groups = 8});

#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

struct GroupNormOptions {
  int64_t groups = 1;  // divides the number of channels
  double epsilon = 1e-5;
  bool affine = true;  // has a weight and a bias
};

/// Parameters name.weight and name.bias where affine, one entry per channel each. A group of a
/// sample must hold more than one value.
ValueId group_norm(Graph& graph, ValueId x, const std::string& name,
                   const GroupNormOptions& options = {});

}  // namespace tessera
