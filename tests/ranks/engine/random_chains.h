#pragma once
// Random residual chains, solved by multigrid on slices of layers: networks, options and
// placements as functions of a seed.

#include "tests/ranks/engine/random_network.h"

namespace tessera {

/// 2 to 8 slices of layers, by turns with a grid in each, replicas and micro-batches.
RandomCase random_chain_case(uint64_t seed);

}  // namespace tessera
