#pragma once
// A network that only this process and those that it starts can reach. Open MPI's mpirun listens on
// every address of the machine and has no option against that, so where all ranks are here it gets
// a network namespace in which there is the loopback device and nothing else. Files on network file
// systems are not affected: their mounts belong to the system.

namespace tessera::mpi {

/// Whether the system allows it: tried by a child process.
bool can_enter_private_network();

/// Moves this process, which has one thread, into a network of its own. Where that fails the
/// process may be half on its way: ask can_enter_private_network() first. Safe between fork() and
/// exec(). Clears the parent's death signal.
bool enter_private_network();

}  // namespace tessera::mpi
