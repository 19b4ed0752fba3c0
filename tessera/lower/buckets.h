#pragma once
// Groups the parameters' gradients into buckets, in the order in which backward completes them, so
// that each bucket's reduction starts as soon as its last gradient is there. A bucket's parameters
// have the same holders: the ranks whose nodes use them.

#include <vector>

#include "tessera/lower/edges.h"

namespace tessera {

struct BucketPlan {
  std::vector<ParameterId> parameters;
  Members holders;
};

/// The ranks that use each parameter, ascending; one that nobody uses is held by the first stage.
std::vector<Members> parameter_holders(const PlacedGraph& placed);

/// Trainable parameters only. A bucket takes at most a quarter of what is to come, so that the last
/// ones, which have no backward left to hide behind, are small; the first ones are small as well
/// and grow, because activations take most memory when backward begins. A parameter that is larger
/// than that, or than `max_elements`, has a bucket of its own.
std::vector<BucketPlan> plan_buckets(const Graph& graph, const std::vector<Members>& holders,
                                     int64_t max_elements);

}  // namespace tessera
