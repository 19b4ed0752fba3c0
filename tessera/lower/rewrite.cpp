#include "tessera/lower/rewrite.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/lower/multigrid.h"
#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/pointwise/relu.h"

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

}  // namespace

const std::vector<Rewrite>& rewrites() {
  static const std::vector<Rewrite> all{
      {"fuse-norm-relu", "a batch norm and the ReLU that alone reads it become one operator",
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
  const Op& op = *graph.node(node).op;
  const ValueId output = graph.node(node).output;
  const std::vector<Use>& uses = graph.value(output).uses;
  const std::vector<ValueId>& outputs = graph.outputs();
  if (uses.size() != 1 || std::find(outputs.begin(), outputs.end(), output) != outputs.end())
    return std::nullopt;
  const Op& reader = *graph.node(uses[0].node).op;
  const bool fuses = (is_plain_batch_norm(op) && is_relu(reader)) ||
                     (op.kind() == "flatten" && reader.kind() == "linear");
  return fuses ? std::optional(uses[0].node) : std::nullopt;
}

}  // namespace tessera
