#pragma once
// Cross entropy of class scores against labels, averaged as PyTorch does it: for pixels p that are
// not ignored, with w the class weights, t the labels and e the label smoothing over K classes,
//
//   loss = sum_p [ (1 - e) w_t(-log q_t) + e/K sum_k w_k(-log q_k) ] / sum_p w_t,  q = softmax(x)
//
// The denominator is a statistic of the targets over the whole batch, so every owner of pixels can
// add its part alone. Where it is 0 (all targets ignored) the loss is NaN, as in PyTorch.
//
// Example:
//   ValueId target = add_target(graph, logits, "labels");
//   cross_entropy(graph, logits, target, "loss", {.ignore_index = 255});

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/ops/loss/loss_target.h"

namespace tessera {

struct CrossEntropyOptions {
  std::vector<double> class_weights = {};  // one per class; none: all 1
  int64_t ignore_index = -100;             // targets with this label do not count
  double label_smoothing = 0;              // in [0, 1]
  double weight = 1;                       // factor on the loss
};

/// Logits are batch x classes x space (or batch x classes); the target as from add_target. A label
/// outside [0, classes) that is not ignore_index is InvalidInput when the step runs.
ValueId cross_entropy(Graph& graph, ValueId logits, ValueId target, const std::string& name,
                      const CrossEntropyOptions& options = {});

}  // namespace tessera
