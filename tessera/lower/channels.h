#pragma once
// Numbers for everything that communicates, the same on all ranks: transfers first, then the
// gathers of the nodes' statistics, then the loss, then the buckets.

#include "tessera/lower/edges.h"

namespace tessera {

inline int gather_channel(const PlacedGraph& placed, NodeId node) {
  return placed.num_channels + 2 * node;
}
inline int grad_gather_channel(const PlacedGraph& placed, NodeId node) {
  return gather_channel(placed, node) + 1;
}
inline int loss_channel(const PlacedGraph& placed) {
  return gather_channel(placed, static_cast<NodeId>(placed.graph.nodes().size()));
}
inline int bucket_channel(const PlacedGraph& placed, int bucket) {
  return loss_channel(placed) + 1 + bucket;
}

}  // namespace tessera
