#pragma once
// Numbers for everything that communicates, the same on all ranks: transfers first, then the
// statistics of the nodes for each micro-batch, those of the whole batch, then the loss,
// then the buckets, and the norm of their gradients.

#include "tessera/lower/edges.h"

namespace tessera {

/// Of one half of the node's channels, or of all.
inline int statistics_channel(const PlacedGraph& placed, NodeId node, int micro_batch, int half) {
  return placed.num_channels + 3 * (node * placed.num_micro_batches() + micro_batch) + half;
}
inline int grad_statistics_channel(const PlacedGraph& placed, NodeId node, int micro_batch) {
  return statistics_channel(placed, node, micro_batch, 2);
}
inline int batch_statistics_channel(const PlacedGraph& placed, NodeId node) {
  return statistics_channel(placed, static_cast<NodeId>(placed.graph.nodes().size()), 0, 0) + node;
}
inline int loss_channel(const PlacedGraph& placed) {
  return batch_statistics_channel(placed, static_cast<NodeId>(placed.graph.nodes().size()));
}
inline int bucket_channel(const PlacedGraph& placed, int bucket) {
  return loss_channel(placed) + 1 + bucket;
}
inline int norm_channel(const PlacedGraph& placed, int num_buckets) {
  return bucket_channel(placed, num_buckets);
}

}  // namespace tessera
