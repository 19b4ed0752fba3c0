#pragma once
// What mpirun or srun has put into the environment of the processes it started; known before MPI.
// A rank counts only together with a number of processes that it fits: a shell may have kept one
// variable of a job that has long ended.

#include <optional>

namespace tessera::mpi {

/// The place of a process among those that the launcher has started.
struct LaunchedPlace {
  int rank = 0;
  int size = 1;
};

/// Nothing where no launcher has said both, or where what it said does not fit together.
std::optional<LaunchedPlace> launched_place();

/// The place among the processes that the launcher has started on this machine; nothing where it
/// does not say.
std::optional<LaunchedPlace> place_on_this_machine();

/// The number of this process among those of its machine, by whichever launcher says it, also where
/// none says how many there are: for sharing out what a machine has in turn.
std::optional<int> local_rank();

/// From now on the place is the one that MPI sees, whatever the environment says.
void set_place(LaunchedPlace place);

}  // namespace tessera::mpi
