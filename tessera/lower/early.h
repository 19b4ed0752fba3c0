#pragma once
// What can run before the first micro-batch. The denominator of a loss is that of the whole batch,
// so a backward that starts before the last forward needs the targets of all micro-batches first:
// the targets, and what is computed from them alone (labels resized for an auxiliary output), come
// early. A loss whose statistics read predictions (Dice) has to wait for all forwards instead.

#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct EarlyPart {
  std::vector<bool> values;  // inputs and what is computed from them early
  std::vector<bool> nodes;
  std::vector<bool> losses;  // per node: a loss whose statistics are known early

  /// A loss whose statistics are not known early; -1: none.
  NodeId late_loss = -1;
};

/// With one micro-batch nothing needs to be early.
EarlyPart find_early_part(const Graph& graph, int64_t micro_batches);

}  // namespace tessera
