#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/norm/plane_norm_op.h"
#include "tessera/ops/pointwise/relu.h"

namespace tessera {

Graph fuse_norm_relu(const Graph& graph, const Plan& plan) {
  return replace_pairs(
      graph, plan, [](const FusingPair& pair) { return is_relu(*pair.reader.op); },
      [](Graph& result, const std::vector<ValueId>& inputs, const FusingPair& pair) {
        const Node& norm = pair.node;
        const PlaneNormOp& op = *plane_norm_op(*norm.op);
        return result.add_node(norm.name, op.with_tail({op.tail().adds, NormActivation::kRelu}),
                               inputs, norm.parameters, norm.buffers);
      });
}

}  // namespace tessera
