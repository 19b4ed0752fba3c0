#include "tessera/lower/rewrite.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/multigrid.h"
#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/norm/plane_norm_op.h"

namespace tessera {
namespace {

std::string optional_names() {
  std::vector<std::string> names;
  for (const Rewrite& each : rewrites())
    if (each.kind == Rewrite::Kind::kOptional) names.push_back(each.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_without(const std::vector<std::string>& without) {
  for (const std::string& name : without) {
    const auto found = std::ranges::find(rewrites(), name, &Rewrite::name);
    if (found == rewrites().end())
      throw_error<InvalidInput>("[rewrite] there is no pass {}; those that can be left out are {}",
                                name, optional_names());
    if (found->kind == Rewrite::Kind::kRequired)
      throw_error<InvalidInput>(
          "[rewrite] {} cannot be left out: {}; those that can be left out are {}", name,
          found->what, optional_names());
  }
}

/// The only node that reads a node's output; none where it is a result, too.
std::optional<NodeId> only_reader(const Graph& graph, NodeId node) {
  const ValueId output = graph.node(node).output;
  const std::vector<Use>& uses = graph.value(output).uses;
  const std::vector<ValueId>& outputs = graph.outputs();
  if (uses.size() != 1 || std::find(outputs.begin(), outputs.end(), output) != outputs.end())
    return std::nullopt;
  return uses[0].node;
}

bool can_join_a_sum(const Graph& graph, NodeId node) {
  const PlaneNormOp* norm = plane_norm_op(*graph.node(node).op);
  return norm != nullptr && norm->can_add() && only_reader(graph, node);
}

/// Of two norms that are added, the later one: the other is there by then.
bool sum_takes_norm(const Graph& graph, NodeId norm, NodeId sum) {
  const Node& reader = graph.node(sum);
  if (reader.op->kind() != "add" || !can_join_a_sum(graph, norm) ||
      reader.types.inputs[0] != reader.types.inputs[1])
    return false;
  return std::ranges::all_of(reader.inputs, [&](ValueId input) {
    const NodeId producer = graph.value(input).producer;
    return producer <= norm || !can_join_a_sum(graph, producer);
  });
}

}  // namespace

const std::vector<Rewrite>& rewrites() {
  static const std::vector<Rewrite> all{
      {"fuse-norm-add",
       "a norm and the sum that alone reads it become one operator, without multigrid",
       Rewrite::Kind::kOptional, fuse_norm_add},
      {"fuse-norm-relu",
       "a norm, or its sum with another value, and the ReLU or ReLU6 that alone reads it become "
       "one operator",
       Rewrite::Kind::kOptional, fuse_norm_relu},
      {"sums-by-parts",
       "a sum or mean over all of space, which has no kernels of its own, becomes a partial sum of "
       "each cell of the grid and their sum",
       Rewrite::Kind::kRequired, sums_by_parts},
      {"linear-by-parts",
       "a flatten and its linear layer become a product with each cell of the grid and their sum, "
       "where there are fewer samples than ranks",
       Rewrite::Kind::kOptional, linear_by_parts},
      {"multigrid",
       "a residual chain becomes sweeps over its intervals, where the plan asks for multigrid",
       Rewrite::Kind::kRequired, solve_by_multigrid}};
  return all;
}

Graph rewrite(const Graph& graph, const Plan& plan, const std::vector<std::string>& without) {
  check_without(without);
  Graph result = graph;
  for (const Rewrite& each : rewrites())
    if (std::ranges::find(without, each.name) == without.end()) result = each.apply(result, plan);
  return result;
}

std::optional<NodeId> fusing_reader(const Graph& graph, NodeId node) {
  const std::optional<NodeId> reader = only_reader(graph, node);
  if (!reader) return std::nullopt;
  const Op &op = *graph.node(node).op, &after = *graph.node(*reader).op;
  const PlaneNormOp* norm = plane_norm_op(op);
  const bool fuses = (norm && norm->can_activate() && norm_activation(after)) ||
                     sum_takes_norm(graph, node, *reader) ||
                     (op.kind() == "flatten" && after.kind() == "linear");
  return fuses ? reader : std::nullopt;
}

}  // namespace tessera
