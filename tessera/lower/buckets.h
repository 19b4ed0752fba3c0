#pragma once
// Groups the parameters' gradients into buckets in the order in which backward completes them, so
// that each bucket's reduction starts as soon as its last gradient is there.

#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct BucketPlan {
  std::vector<ParameterId> parameters;
  NodeId ready_after = -1;  // the node whose backward completes the bucket
};

/// Trainable parameters only. A parameter larger than `max_elements` has a bucket of its own.
std::vector<BucketPlan> plan_buckets(const Graph& graph, int64_t max_elements);

}  // namespace tessera
