#pragma once
// Batch normalisation over batch and space, alone or with a ReLU. Statistics are those of the whole
// batch (or, where asked for, of each micro-batch) and image however they are cut: each piece
// gives count, mean and M2 of its own elements, which are merged by Chan's formula (see
// docs/architecture.md). Backward reads the input and the merged statistics; the output is
// recomputed where it is wanted, not kept.
//
// Example:
//   ValueId y = batch_norm(graph, x, "enc1.bn1", {.momentum = 0.01});

#include <memory>
#include <string>

#include "tessera/graph/graph.h"
#include "tessera/kernels/norm.h"
#include "tessera/ops/norm/norm.h"

namespace tessera {

struct BatchNormOptions {
  enum class Statistics {
    kBatch,    // of this batch; also updates the running statistics
    kRunning,  // the running ones, unchanged
  };
  using Activation = NormActivation;

  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of this batch in the running statistics
  Statistics statistics = Statistics::kBatch;
  Activation activation = Activation::kNone;
  bool affine = true;       // has a weight and a bias
  bool running = true;      // tracks running statistics; without them kRunning has nothing to use
  int64_t batch_parts = 1;  // parts of the batch with statistics of their own: micro-batches
};

/// Parameters name.weight and name.bias where affine, buffers name.running_mean and
/// name.running_var where running, one entry per channel each. The operator's kind is "batch_norm",
/// or "batch_norm_relu" with the activation.
ValueId batch_norm(Graph& graph, ValueId x, const std::string& name,
                   const BatchNormOptions& options = {});

/// The operator alone, for a node that has its parameters and buffers already.
std::shared_ptr<const Op> batch_norm_op(const BatchNormOptions& options);

}  // namespace tessera
