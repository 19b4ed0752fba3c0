#pragma once
// Random pipelines for a network: which node runs on which stage, the stages' grids, the number of
// micro-batches and the schedule, as functions of a seed.

#include "tests/ranks/engine/random_network.h"

namespace tessera {

/// The network of random_case(seed) with a random pipeline in the place of its plan. Batch norms
/// are by micro-batches where there are several.
RandomCase random_stages_case(uint64_t seed);

}  // namespace tessera
