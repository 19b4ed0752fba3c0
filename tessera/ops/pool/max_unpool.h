#pragma once
// The reverse of max pooling: each pooled value goes back to where its window had its maximum, and
// all else is zero (SegNet's decoder). The places are found again from the pooling's input by the
// pooling's own rule, so that no positions travel or are kept from one operator to the other. Where
// windows overlap, the last of those that chose a pixel fills it; each of them gets that pixel's
// gradient, as in PyTorch. The pooling's input gets none.
//
// Example:
//   ValueId pooled = max_pool(graph, x, "pool", options);
//   ValueId back = max_unpool(graph, pooled, x, "unpool", options);   // of x's shape

#include <string>

#include "tessera/ops/pool/pooling.h"

namespace tessera {

/// `values` has the shape that the pooling of `pooled` with these options has.
ValueId max_unpool(Graph& graph, ValueId values, ValueId pooled, const std::string& name,
                   const PoolOptions& options);

}  // namespace tessera
