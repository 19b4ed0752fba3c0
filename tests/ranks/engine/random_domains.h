#pragma once
// Small random networks of several domains, as functions of a seed: an image for each, of batches
// and sizes of their own, one set of weights that all pass, private branches, and the losses that
// compare the domains. Placed by domains, or anyhow.

#include "tests/ranks/engine/random_network.h"

namespace tessera {

RandomCase random_domains_case(uint64_t seed);

}  // namespace tessera
