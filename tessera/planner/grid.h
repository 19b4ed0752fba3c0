#pragma once
// Chooses how many parts each spatial axis is cut into.

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.h"
#include "tessera/plan/plan.h"

namespace tessera {

/// All ways to write `parts` as an ordered product of `axes` factors.
std::vector<std::vector<int64_t>> factorisations(int64_t parts, int axes);

/// The grid of `parts` ranks per replica with the least halo traffic in a forward pass; `plan`
/// gives the other axes. Among equals, the one with the smallest largest factor. Throws
/// InvalidInput where no grid of so many parts fits the input.
std::vector<int64_t> best_space(const Graph& graph, const Plan& plan, int64_t parts);

/// How each rank's part is cut into `count` pieces: with the least surface between pieces.
std::vector<int64_t> best_pieces(const Graph& graph, const Plan& plan, int64_t count);

}  // namespace tessera
