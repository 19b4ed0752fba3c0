#pragma once
// The maximum mean discrepancy of two domains' codes (Gretton et al., "A Kernel Two-Sample Test",
// 2012), by a sum of Gaussian kernels k(x, y) = sum_b exp(-|x - y|^2 / (2 b)):
//
//   mmd(A, B) = mean k(a, a') + mean k(b, b') - 2 mean k(a, b)
//
// Each of the means is a loss of its own. A piece holds some samples of the first input and all of
// the second, so batches may be cut and may differ in size.
//
// Example:
//   mmd_loss(graph, source_code, target_code, "mmd", {.weight = 0.25});

#include <string>
#include <vector>

#include "tessera/base/step_function.h"
#include "tessera/graph/graph.h"

namespace tessera {

/// The bandwidths of the published code of domain separation networks.
inline const std::vector<double> kUsualBandwidths{
    1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 5, 10, 15, 20, 25, 30, 35, 100, 1e3, 1e4, 1e5, 1e6};

struct KernelMeanOptions {
  std::vector<double> bandwidths = kUsualBandwidths;  // squares of lengths, above 0
  StepFunction weight = 1;
};

/// weight * the mean of k over all pairs of a row of `a` with one of `b`: batch x features each.
ValueId kernel_mean(Graph& graph, ValueId a, ValueId b, const std::string& name,
                    const KernelMeanOptions& options = {});

/// The three of them: name.first, name.second and name.between.
void mmd_loss(Graph& graph, ValueId a, ValueId b, const std::string& name,
              const KernelMeanOptions& options = {});

}  // namespace tessera
