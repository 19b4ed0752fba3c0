#include "tessera/ops/conv/direct_convolution.h"

#include "tessera/graph/transform.h"
#include "tessera/ops/conv/convolution_op.h"

namespace tessera {

Graph with_direct_convolutions(const Graph& graph) {
  return transform(graph,
                   [](Graph& result, const Node& node,
                      const std::vector<ValueId>& inputs) -> std::optional<ValueId> {
                     const auto* convolution = dynamic_cast<const ConvolutionOp*>(node.op.get());
                     if (convolution == nullptr) return std::nullopt;
                     return result.add_node(node.name, convolution->direct(), inputs,
                                            node.parameters, node.buffers);
                   });
}

}  // namespace tessera
