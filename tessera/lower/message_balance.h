#pragma once
// Whether the messages of all ranks fit together, without any rank knowing another's program. For
// every pair, both ends hash the messages from one to the other in their order; the sender adds the
// hash, the receiver takes it off. Summed over all ranks everything cancels out where every message
// meets its like, and nothing else does, short of a chance of 2^-64.

#include <cstdint>

#include "tessera/lower/program.h"

namespace tessera {

/// This rank's term of the sum, which is 0 modulo 2^64.
uint64_t message_balance(const Program& program);

}  // namespace tessera
