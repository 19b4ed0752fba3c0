#pragma once
// Which values backward reads, and which of those are computed again rather than kept.
//
// A cheap output (batch norm + ReLU, concat) is recomputed when what must be kept for that is
// smaller than the output itself: batch norm's backward reads its input anyway, so its output costs
// nothing.

#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/lower/options.h"

namespace tessera {

struct BackwardValues {
  /// A trainable parameter or wanted input feeds it, or its gradient is measured; and it feeds a
  /// loss.
  std::vector<bool> needs_gradient;
  std::vector<bool> required;    // backward reads it
  std::vector<bool> recomputed;  // ... and it is computed again for that

  /// Whether backward of the node gives this input a gradient.
  bool passes_gradient(const Node& node, int input) const {
    return needs_gradient[node.output] && needs_gradient[node.inputs[input]] &&
           node.op->differentiable(input);
  }
};

BackwardValues analyse_backward(const Graph& graph, const LowerOptions& options);

}  // namespace tessera
