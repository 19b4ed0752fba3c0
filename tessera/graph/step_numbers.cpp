#include "tessera/graph/step_numbers.h"

#include <algorithm>

namespace tessera {

Range step_numbers(const Op& op) {
  const auto* measurement = dynamic_cast<const Measurement*>(&op);
  return measurement == nullptr ? Range{0, 1} : measurement->step_numbers();
}

int64_t num_step_numbers(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes())
    if (node.op->is_loss()) count = std::max(count, step_numbers(*node.op).end);
  return count;
}

}  // namespace tessera
