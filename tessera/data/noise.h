#pragma once
// Random inputs for proofs and benchmarks: normal noise for images, uniform noise for targets,
// labels or real; all are functions of (seed, name, step, global index), so that each rank makes
// its own box. Noise has no ties, which a max pooling could break differently.

#include "tessera/graph/graph.h"

namespace tessera {

/// Writes the box of graph input `input` into `target` (a view of the box's shape).
void load_noise(const Graph& graph, ValueId input, uint64_t seed, int64_t step, const Box& box,
                at::Tensor target);

}  // namespace tessera
