#pragma once
// The proof: the same steps on a placement and on the one-rank oracle, compared number by number.
//
// Relative difference of a tensor = max|a - ref| / max(max|ref|, 1e-3 * max|ref| over all tensors
// of that kind): the gradient of a bias before batch norm is truly zero, and would have no scale of
// its own. The gradient of the input is judged against 1e-6 of the largest gradient of a parameter,
// where it is smaller than that: after a norm over equal numbers it is truly zero.

#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/transport.h"
#include "tessera/lower/lower.h"

namespace tessera {

enum class OptimiserKind { kSgd, kAdamW };

struct VerifyOptions {
  Plan plan;
  at::ScalarType real = at::kDouble;
  OptimiserKind optimiser = OptimiserKind::kSgd;
  std::optional<double> learning_rate;  // none: the optimiser's default
  double momentum = 0.9;                // of SGD
  double clip_norm = 0;                 // 0: gradients are not clipped
  int64_t steps = 2;
  std::vector<at::Tensor> inputs;  // as Graph::inputs(), the same in every step; empty: noise
  uint64_t seed = 1;
  int threads = 1;  // per rank
  bool recompute = true;
  std::vector<std::string> without_rewrites = {};  // see lower/rewrite.h
  double timeout_seconds = 60;
};

struct VerifyReport {
  int ranks = 1;
  double loss_rel = 0;
  double output_rel = 0;
  double input_grad_rel = 0;
  double param_grad_rel = 0;
  double updated_param_rel = 0;
  double buffer_rel = 0;
  double param_grad_l2 = 0;  // |a - ref| / |ref| over all parameters together
  std::string worst;         // the tensor with the largest difference, and its step
  bool ok = false;
  // What the placement computed, for comparisons from outside:
  std::vector<double> losses;          // of each step
  std::vector<at::Tensor> gradients;   // of the first step, as Graph::parameters()
  std::vector<at::Tensor> parameters;  // after the last step, buffers among them
};

/// How the placement's step is lowered.
LowerOptions verified_step(const VerifyOptions& options);

/// Collective over all ranks of the transport, which are those of the plan; `lowering` is that of a
/// verified_step() of the graph. Rank 0 runs the oracle
/// and gets the report; the others get an empty one. Float64: all within 1e-10 (AdamW: 1e-8).
/// Float32: loss within 1e-5, outputs within 1e-4; gradients are reported, since another order of
/// summation flips ReLU and max-pooling decisions.
VerifyReport verify(const Graph& graph, const Lowering& lowering, const VerifyOptions& options,
                    Transport& transport);

/// The same on ranks that are threads of this process. The programs of a small world are proved
/// together first.
VerifyReport verify(const Graph& graph, const VerifyOptions& options);

}  // namespace tessera
