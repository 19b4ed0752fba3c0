#include "tessera/graph/step_numbers.h"

#include <algorithm>

namespace tessera {

const GradientMeasurement* gradient_measurement(const Op& op) {
  return dynamic_cast<const GradientMeasurement*>(&op);
}

Range step_numbers(const Op& op) {
  if (const GradientMeasurement* measurement = gradient_measurement(op))
    return measurement->step_numbers();
  const auto* measurement = dynamic_cast<const Measurement*>(&op);
  return measurement == nullptr ? Range{0, 1} : measurement->step_numbers();
}

int64_t num_step_numbers(const Graph& graph) {
  int64_t count = 0;
  for (const Node& node : graph.nodes())
    if (node.op->is_loss() || gradient_measurement(*node.op))
      count = std::max(count, step_numbers(*node.op).end);
  return count;
}

}  // namespace tessera
