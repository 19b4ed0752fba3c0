#include "tessera/proof/solve_error.h"

#include <cmath>

#include "tessera/lower/multigrid.h"
#include "tessera/proof/oracle.h"

namespace tessera {
namespace {

/// |a - reference| / |reference| over all tensors that both have.
double relative_distance(const std::vector<at::Tensor>& a,
                         const std::vector<at::Tensor>& reference) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (!reference[i].defined() || !reference[i].is_floating_point()) continue;
    const at::Tensor right = reference[i].to(at::kDouble);
    difference += (a[i].to(at::kDouble) - right).square().sum().item<double>();
    size += right.square().sum().item<double>();
  }
  return difference == 0 ? 0 : std::sqrt(difference / size);
}

StepTensors first_step(const Graph& graph, const VerifyOptions& options) {
  return Oracle(graph, options).step(0);
}

}  // namespace

SolveError solve_error(const Graph& graph, const VerifyOptions& options) {
  if (!options.plan.multigrid) return {};
  VerifyOptions serial = options;
  serial.plan = without_multigrid(options.plan);
  const StepTensors found = first_step(graph, options), right = first_step(graph, serial);
  return {std::abs(found.loss - right.loss) / std::abs(right.loss),
          relative_distance(found.outputs, right.outputs),
          relative_distance(found.gradients, right.gradients)};
}

}  // namespace tessera
