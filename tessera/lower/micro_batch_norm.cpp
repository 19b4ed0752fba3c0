#include "tessera/lower/micro_batch_norm.h"

#include "tessera/graph/transform.h"
#include "tessera/ops/norm/norm.h"

namespace tessera {

Graph with_micro_batch_norm(const Graph& graph, int64_t parts) {
  return transform(graph, [parts](Graph& result, const Node& node,
                                  const std::vector<ValueId>& inputs) {
    const std::shared_ptr<const Op> apart = with_batch_parts(*node.op, parts);
    if (!apart) return std::optional<ValueId>();
    return std::optional(result.add_node(node.name, apart, inputs, node.parameters, node.buffers));
  });
}

}  // namespace tessera
