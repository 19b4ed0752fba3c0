#pragma once
// The system's calls that say on which CPUs a thread may run. Where a system has none, nothing is
// known and nothing can be set.

#include "tessera/runtime/cores.h"

namespace tessera {

/// Of the calling thread; empty where the system does not say.
Cpus thread_affinity();

/// Of the calling thread, and of threads that it starts from now on. False where the system
/// refuses.
bool set_thread_affinity(const Cpus& cpus);

}  // namespace tessera
