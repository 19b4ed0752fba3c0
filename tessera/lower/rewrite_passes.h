#pragma once
// The passes that rewrite.h lists, and what they share.
//
//   batch_norm → relu              →  batch_norm_relu
//   spatial sum or mean, all axes  →  partial_sum → sum_parts
//   flatten → linear, small batch  →  partial_linear → sum_parts

#include <functional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

Graph fuse_norm_relu(const Graph& graph, const Plan& plan);
Graph sums_by_parts(const Graph& graph, const Plan& plan);
Graph linear_by_parts(const Graph& graph, const Plan& plan);

/// A node and the reader that may take it over (fusing_reader), both run by `stage`.
struct FusingPair {
  const Node& node;
  const Node& reader;
  int stage = 0;
};

/// Puts something else in the place of the pairs that `belongs` picks. `replace` gets the graph
/// that is being made and the new value that stands for the input of `pair.node`, and gives the one
/// that stands for the output of `pair.reader`.
Graph replace_pairs(
    const Graph& graph, const Plan& plan,
    const std::function<bool(const FusingPair& pair)>& belongs,
    const std::function<ValueId(Graph& result, ValueId input, const FusingPair& pair)>& replace);

/// The spatial cells of a value, as a stage that reads it would cut it.
std::vector<Box> cells_on_stage(const Graph& graph, const Plan& plan, ValueId value, int stage);

/// The name of the node that makes the parts of which `node` is the sum.
std::string partial_name(const Node& node);

}  // namespace tessera
