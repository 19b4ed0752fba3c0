#pragma once
// Threads and buffers that libraries take without asking, claimed before the work starts. A library
// that cannot have them does not say so: OpenMP's runtime ends the process with exit code 1 or
// never ends it, OpenBLAS tries again for ever.

#include <cstdint>

namespace tessera {

/// Address space that they take besides values and parameters: buffers and stacks.
int64_t claimed_bytes(int ranks, int threads_per_rank);

/// For `ranks` ranks of this process with `threads_per_rank` threads each. Throws OutOfMemory, with
/// the remedy, where they cannot be had; InvalidInput where a rank would have more threads than are
/// of use on this machine.
void claim_resources(int ranks, int threads_per_rank);

}  // namespace tessera
