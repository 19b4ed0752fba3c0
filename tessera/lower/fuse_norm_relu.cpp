#include "tessera/lower/rewrite_passes.h"
#include "tessera/ops/norm/plane_norm_op.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/relu.h"

namespace tessera {

std::optional<NormActivation> norm_activation(const Op& op) {
  if (is_relu(op)) return NormActivation::kRelu;
  const std::optional<PointwiseOptions> options = pointwise_options(op);
  const bool is_relu6 = options && options->function == PointwiseFunction::kHardtanh &&
                        options->a == 0 && options->b == 6;
  return is_relu6 ? std::optional(NormActivation::kRelu6) : std::nullopt;
}

Graph fuse_norm_relu(const Graph& graph, const Plan& plan) {
  return replace_pairs(
      graph, plan,
      [](const FusingPair& pair) { return norm_activation(*pair.reader.op).has_value(); },
      [](Graph& result, const std::vector<ValueId>& inputs, const FusingPair& pair) {
        const Node& norm = pair.node;
        const PlaneNormOp& op = *plane_norm_op(*norm.op);
        const NormTail tail{op.tail().adds, *norm_activation(*pair.reader.op)};
        return result.add_node(norm.name, op.with_tail(tail), inputs, norm.parameters,
                               norm.buffers);
      });
}

}  // namespace tessera
