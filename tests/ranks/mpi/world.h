#pragma once
// The transport that all tests of this program share: starting ranks takes seconds, so every test
// runs over the same world, on all its ranks, in the same order.

#include "tessera/comm/collectives.h"
#include "tessera/comm/transport.h"

namespace tessera {

Transport& world();

/// All ranks of the world.
Members everyone();

}  // namespace tessera
