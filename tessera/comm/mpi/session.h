#pragma once
// All processes of a session: what a program has started, their children, and the orphans among
// them, unless they have left it on purpose. So nothing is forgotten when mpirun is gone.

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace tessera::mpi {

/// Those that still run. `leader` is the process that called setsid().
std::vector<pid_t> living_in_session(pid_t leader);

/// Returns when none is left; those that live after `patience` are killed.
void end_session(pid_t leader, std::chrono::milliseconds patience);

}  // namespace tessera::mpi
