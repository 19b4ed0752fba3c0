#pragma once
// How far a network that is solved by multigrid is from the same network, layer after layer. That
// is no error of a placement: it is what the plan asks for, and what its V-cycles leave.

#include "tessera/graph/graph.h"
#include "tessera/proof/verify.h"

namespace tessera {

/// Of the first step, before any update, by two oracles on this rank; zeros where the plan has no
/// multigrid. Gradients: |multigrid - serial| / |serial| over all parameters together.
SolveError solve_error(const Graph& graph, const VerifyOptions& options);

}  // namespace tessera
