#pragma once
// One operator on one set of tensors, run in two ways: whole, by Op::reference() under autograd,
// and in pieces, by its kernels in the order of phases that op.h gives.

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/ops/op_harness.h"
#include "tests/unit/ops/random_views.h"

namespace tessera {

using Tensors = std::vector<at::Tensor>;

struct Case {
  const Op& op;
  std::string name;
  NodeTypes types;
  Tensors inputs;
  Tensors parameters;
  Tensors buffers;
  at::Tensor output_weights;  // what is differentiated: the sum of outputs times these
  uint64_t seed = 0;
  at::ScalarType real = at::kDouble;
};

struct OpResult {
  at::Tensor output;  // of a loss: the loss
  Tensors grad_inputs;
  Tensors grad_parameters;
  Tensors buffers;
};

OpResult run_whole(const Case& test);

/// Backward gets only what the operator says that it keeps. Broken promises of the kernels (a write
/// outside a view, other bits when recomputed) are failures of the current test.
OpResult run_in_pieces(const Case& test, Draw& draw, const HarnessOptions& options);

}  // namespace tessera
