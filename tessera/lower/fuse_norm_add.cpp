#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/norm/plane_norm_op.h"

namespace tessera {

/// Multigrid looks for sums, and takes derivatives at the norms that it finds.
Graph fuse_norm_add(const Graph& graph, const Plan& plan) {
  if (plan.multigrid) return graph;
  return replace_pairs(
      graph, plan, [](const FusingPair& pair) { return pair.reader.op->kind() == "add"; },
      [](Graph& result, const std::vector<ValueId>& inputs, const FusingPair& pair) {
        const Node& norm = pair.node;
        return result.add_node(norm.name, plane_norm_op(*norm.op)->with_tail({.adds = true}),
                               inputs, norm.parameters, norm.buffers);
      });
}

}  // namespace tessera
