#pragma once
// Binary cross entropy of scores, each channel a yes-or-no question of its own, as PyTorch's
// binary_cross_entropy_with_logits: the mean over all elements, with s the logistic function and w
// the channel's pos_weight, of
//
//   -w t log s(x) - (1 - t) log s(-x)
//
// Targets are real numbers of the scores' shape, or labels: 0 or 1 for a single channel, the number
// of the one channel that is 1 for several. Pixels whose label is ignored are left out of sum and
// count.
//
// Example:
//   binary_cross_entropy(graph, logits, add_target(graph, logits, "mask"), "loss");

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ops/loss/loss_target.h"

namespace tessera {

struct BinaryCrossEntropyOptions {
  std::vector<double> pos_weight = {};  // factor on yes: one, or one per channel; none: all 1
  int64_t ignore_index = -100;          // labels only
  double weight = 1;                    // factor on the loss
};

ValueId binary_cross_entropy(Graph& graph, ValueId logits, ValueId target, const std::string& name,
                             const BinaryCrossEntropyOptions& options = {});

}  // namespace tessera
