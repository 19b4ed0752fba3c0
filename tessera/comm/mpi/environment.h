#pragma once
// What mpirun or srun has put into the environment of the processes it started; known before MPI.

#include <optional>

namespace tessera::mpi {

/// The number of processes that the launcher has started, where it says so.
std::optional<int> launched_size();

/// The rank of this process; -1 where no launcher has given one.
int launched_rank();

}  // namespace tessera::mpi
