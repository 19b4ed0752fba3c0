#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/norm/batch_norm.h"

namespace tessera {

Graph fuse_norm_relu(const Graph& graph, const Plan& plan) {
  return replace_pairs(
      graph, plan, [](const FusingPair& pair) { return is_plain_batch_norm(*pair.node.op); },
      [](Graph& result, ValueId input, const FusingPair& pair) {
        const Node& norm = pair.node;
        return result.add_node(norm.name, with_relu(*norm.op), {input}, norm.parameters,
                               norm.buffers);
      });
}

}  // namespace tessera
