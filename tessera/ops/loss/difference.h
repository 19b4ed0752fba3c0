#pragma once
// The difference loss of domain separation networks (Bousmalis et al., 2016): private and shared
// codes of a domain are to be orthogonal. With the codes' rows (samples of features, pixels of
// images) in the matrices A and B,
//
//   loss = weight * ||A^T B||_F^2
//
// The rows are usually centred and of length 1 (batch_centring.h, row_norm.h). Each piece has the
// product of its own rows as statistics: channels x channels numbers, however large the image is.
//
// Example:
//   ValueId rows = row_norm(graph, batch_centring(graph, code, "centred"), "rows");
//   difference_loss(graph, shared_rows, private_rows, "difference", {.weight = 0.05});

#include <string>

#include "tessera/base/step_function.h"
#include "tessera/graph/graph.h"

namespace tessera {

struct DifferenceOptions {
  StepFunction weight = 1;
};

/// Both have the same batch and space. Throws InvalidInput where they have not, and where there are
/// too many channels for their products to be statistics.
ValueId difference_loss(Graph& graph, ValueId a, ValueId b, const std::string& name,
                        const DifferenceOptions& options = {});

}  // namespace tessera
