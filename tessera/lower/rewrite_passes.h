#pragma once
// The passes that rewrite.h lists, and what they share.
//
//   norm, other → add              →  norm_add
//   norm → relu, norm_add → relu   →  norm_relu, norm_add_relu
//   spatial sum or mean, all axes  →  partial_sum → sum_parts
//   flatten → linear, small batch  →  partial_linear → sum_parts

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/ops/norm/plane_norm_op.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// What an operator does as the end of a norm's pass; none where it can be no part of that.
std::optional<NormActivation> norm_activation(const Op& op);

Graph fuse_norm_add(const Graph& graph, const Plan& plan);
Graph fuse_norm_relu(const Graph& graph, const Plan& plan);
Graph sums_by_parts(const Graph& graph, const Plan& plan);
Graph linear_by_parts(const Graph& graph, const Plan& plan);

/// A node and the reader that may take it over (fusing_reader), both run by `stage`.
struct FusingPair {
  const Node& node;
  const Node& reader;
  int stage = 0;
  size_t input = 0;  // of the reader, that the node makes
};

/// Puts something else in the place of the pairs that `belongs` picks. `replace` gets the graph
/// that is being made and the new values that stand for the inputs of `pair.node` and then for the
/// others of `pair.reader`, and gives the one that stands for the output of `pair.reader`.
Graph replace_pairs(const Graph& graph, const Plan& plan,
                    const std::function<bool(const FusingPair& pair)>& belongs,
                    const std::function<ValueId(Graph& result, const std::vector<ValueId>& inputs,
                                                const FusingPair& pair)>& replace);

/// The spatial cells of a value, as a stage that reads it would cut it.
std::vector<Box> cells_on_stage(const Graph& graph, const Plan& plan, ValueId value, int stage);

/// The name of the node that makes the parts of which `node` is the sum.
std::string partial_name(const Node& node);

}  // namespace tessera
