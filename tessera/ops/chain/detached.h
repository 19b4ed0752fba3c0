#pragma once
// An operator without its gradient: it computes what another one does, with the same weights, and
// nothing flows back through it. The sweeps of a multigrid solve are made of these.

#include <memory>
#include <string>

#include "tessera/graph/graph.h"

namespace tessera {

/// The operator of `node`. Random numbers are those of the node of that name, so that a copy drops
/// what the original drops.
std::shared_ptr<const Op> detached(const Node& node);

/// The buffers that a copy of the node reads: running statistics are updated by the original alone.
std::vector<ParameterId> buffers_of_copy(const Node& node);

}  // namespace tessera
