#pragma once
// The proof: the same steps on a placement and on the one-rank oracle, compared number by number.
//
// Relative difference of a tensor = max|a - ref| / max(max|ref|, 1e-3 * max|ref| over all tensors
// of that kind): the gradient of a bias before batch norm is truly zero, and would have no scale of
// its own. The gradient of the input is judged against 1e-6 of the largest gradient of a parameter,
// where it is smaller than that: after a norm over equal numbers it is truly zero.
//
// Limits are fixed (judgement.h). Only where a number is beyond its limit, the network's own
// conditioning is measured: the oracle runs once more, a rounding away (oracle.h). Deep networks
// with batch norm move by more than the limit then, after an update above all, and are judged
// against what was measured. The report says so.

#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/transport.h"
#include "tessera/lower/lower.h"
#include "tessera/runtime/device.h"

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
  int threads = 1;           // per rank
  DeviceChoice device = {};  // of the placement; the oracle computes on the CPU
  bool recompute = true;
  std::vector<std::string> without_rewrites = {};  // see lower/rewrite.h
  double timeout_seconds = 60;
  // What the placement computed, whole on rank 0, for comparisons from outside:
  bool keep_gradients = false;   // of the first step
  bool keep_parameters = false;  // after the last step
};

/// How far one more rounding of every number moves the oracle in one step: the largest relative
/// difference of each kind of tensors, and the tensor that moves most.
struct Sensitivity {
  double loss = 0;
  double output = 0;
  double input_gradient = 0;
  double gradient = 0;
  double updated = 0;
  double buffer = 0;
  std::string most;
  double largest = 0;          // of those that are judged
  bool raises_limits = false;  // of some tensor of this step
};

/// How far multigrid is from the network, layer after layer (solve_error.h), relatively.
struct SolveError {
  double loss = 0;
  double output = 0;
  double gradient = 0;
};

struct VerifyReport {
  int ranks = 1;
  std::string device;  // of rank 0: "cpu", "cuda:0 (NVIDIA H200)"
  double loss_rel = 0;
  double output_rel = 0;
  double input_grad_rel = 0;
  double param_grad_rel = 0;
  double updated_param_rel = 0;
  double buffer_rel = 0;
  double param_grad_l2 = 0;                 // |a - ref| / |ref| over all parameters together
  std::optional<SolveError> solve_error;    // where the plan has multigrid
  std::optional<double> residual;           // of the first step's solve, where there is one
  std::optional<double> gradient_residual;  // ... where it is measured
  std::string worst;                        // the tensor with the largest difference, and its step
  bool ok = false;
  double limit = 0;                        // of outputs, in a network where rounding stays small
  std::string failure;                     // the tensor that is furthest beyond its limit
  bool undecided = false;                  // not ok, but rounding alone may have done it
  std::vector<Sensitivity> sensitivities;  // of each step; empty: all is within the fixed limits
  std::vector<double> losses;              // of each step
  std::vector<at::Tensor> gradients;       // as Graph::parameters(); empty: not to be kept
  std::vector<at::Tensor> parameters;      // buffers among them; empty: not to be kept
};

/// How the placement's step is lowered.
LowerOptions verified_step(const VerifyOptions& options);

/// What the oracle takes on rank 0, by an estimate.
struct OracleBytes {
  int64_t values = 0;   // inputs, what autograd keeps, and the largest workspace
  int64_t weights = 0;  // parameters, gradients and the optimiser's state
  int64_t kept = 0;     // what the options want to keep

  /// Besides what rank 0 holds of the placement.
  int64_t besides_placement() const { return values + weights + kept; }
  /// While the conditioning is measured: two oracles, and no placement any more.
  int64_t while_measuring() const { return values + 2 * weights + kept; }
};
OracleBytes oracle_bytes(const Graph& graph, const VerifyOptions& options);

/// Collective over all ranks of the transport, which are those of the plan; `lowering` is that of a
/// verified_step() of the graph. Rank 0 runs the oracle, a step of it after each of the
/// placement's, and gets the report; the others get an empty one.
VerifyReport verify(const Graph& graph, const Lowering& lowering, const VerifyOptions& options,
                    Transport& transport);

/// The same on ranks that are threads of this process. The programs of a small world are proved
/// together first.
VerifyReport verify(const Graph& graph, const VerifyOptions& options);

}  // namespace tessera
