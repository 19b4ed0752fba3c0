#include "tessera/lower/channel_halves.h"

#include "tessera/geometry/split.h"
#include "tessera/ops/norm/norm.h"

namespace tessera {

std::optional<std::pair<Range, Range>> channel_halves(const PlacedGraph& placed, NodeId id, int m) {
  const Node& node = placed.graph.node(id);
  const auto* norm = dynamic_cast<const NormalisesChannels*>(node.op.get());
  if (norm == nullptr || node.op->forward_statistics(node.types).per_piece == 0)
    return std::nullopt;
  if (placed.ranks_of_node(id, m).size() == 1) return std::nullopt;
  if (node.op->saved(Box::whole(node.types.output.shape()), node.types).numel > 0)
    return std::nullopt;
  const int64_t channels = node.types.output.channels();
  const int64_t together = norm->channels_together(node.types);
  const Range first = split(channels, 2, 0, together), second = split(channels, 2, 1, together);
  if (first.empty() || second.empty() || first.end % together != 0) return std::nullopt;
  return std::pair(first, second);
}

}  // namespace tessera
