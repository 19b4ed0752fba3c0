#pragma once
// Puts the loss that a user wrote on every output of a graph, and makes the inputs for its targets.
//
// The first output is compared with the input "target". Other outputs share it where their target
// has the same shape. Where it has not, labels of the same image at another size are made from it
// by resize_labels, as for the auxiliary heads of deep supervision; anything else gets an input of
// its own, "target_<number of the output>".
//
// Example:
//   add_losses(graph, {.spec = "cross_entropy+dice", .output_weights = {1, 0.4}});

#include <string>
#include <vector>

#include "tessera/graph/graph.h"

namespace tessera {

struct LossOptions {
  std::string spec = "cross_entropy";       // see loss_spec.h
  std::vector<double> output_weights = {};  // one per output; none: all 1
  std::vector<double> class_weights = {};   // for class_weights=auto; none: all 1
};

/// The nodes are called "loss", "loss_<term>" for further terms, and "loss_<output>..." for further
/// outputs. A term that takes labels and real targets gets the kind that the others need, and
/// labels where they need none. Throws InvalidInput where terms need different kinds, where a term
/// does not fit an output, and where the number of weights is not that of the outputs.
void add_losses(Graph& graph, const LossOptions& options);

}  // namespace tessera
