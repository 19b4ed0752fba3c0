#include "tessera/lower/cost_model.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {

std::unique_ptr<CostModel> make_cost_model(ScheduleCosts costs, at::ScalarType real) {
  if (costs == ScheduleCosts::kTasks) return std::make_unique<UnitCosts>(real);
  return std::make_unique<Roofline>(RooflineRates{}, real);
}

/// Recomputation and both kinds of gradients are counted as one forward each, the statistics of a
/// piece as one operation on each of its elements.
double Roofline::kernel(const Node& node, Phase phase, const Box& out) const {
  switch (phase) {
    case Phase::kWeightGradient:
      if (node.op->weight_gradient_from_statistics()) return 0;
      [[fallthrough]];
    case Phase::kForward:
    case Phase::kRecompute:
    case Phase::kInputGradient:
      return time(node.op->flops(out, node.types), node.op->elements_moved(out, node.types));
    case Phase::kPieceStatistics:
    case Phase::kPieceGradStatistics: {
      const double elements = static_cast<double>(out.volume());
      return time(elements, elements);
    }
    case Phase::kCombineStatistics:
    case Phase::kMergeStatistics:
    case Phase::kUpdateBuffers:
    case Phase::kCombineGradStatistics:
      return 0;
  }
  TESSERA_CHECK(false, "unknown phase");
}

double Roofline::message(int64_t bytes) const {
  return rates_.message_latency_seconds +
         static_cast<double>(bytes) / rates_.message_bytes_per_second;
}

double Roofline::time(double flops, double elements_moved) const {
  const double bytes = elements_moved * static_cast<double>(c10::elementSize(real()));
  return std::max(flops / rates_.flops_per_second, bytes / rates_.memory_bytes_per_second);
}

}  // namespace tessera
