#pragma once
// Losses of real predictions against real targets, as PyTorch's: the mean over all elements of a
// function of the difference d = x - t.
//
//   mean_squared_error    d²
//   mean_absolute_error   |d|
//   smooth_l1             d² / (2 beta) for |d| < beta, else |d| - beta / 2
//   huber                 d² / 2 for |d| <= delta, else delta (|d| - delta / 2)
//
// Example:
//   mean_squared_error(graph, depth, add_real_target(graph, depth, "depth"), "loss");

#include <string>

#include "tessera/ops/loss/loss_target.h"

namespace tessera {

struct MeanSquaredErrorOptions {
  double weight = 1;  // factor on the loss
};

struct MeanAbsoluteErrorOptions {
  double weight = 1;
};

struct SmoothL1Options {
  double beta = 1;  // at least 0, which makes it the mean absolute error
  double weight = 1;
};

struct HuberOptions {
  double delta = 1;  // above 0
  double weight = 1;
};

ValueId mean_squared_error(Graph& graph, ValueId prediction, ValueId target,
                           const std::string& name, const MeanSquaredErrorOptions& options = {});
ValueId mean_absolute_error(Graph& graph, ValueId prediction, ValueId target,
                            const std::string& name, const MeanAbsoluteErrorOptions& options = {});
ValueId smooth_l1(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
                  const SmoothL1Options& options = {});
ValueId huber(Graph& graph, ValueId prediction, ValueId target, const std::string& name,
              const HuberOptions& options = {});

}  // namespace tessera
