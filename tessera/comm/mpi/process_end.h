#pragma once
// How a process that is a rank ends. MPI cannot start again after it was finalised, so it is
// finalised at the program's exit, however many worlds there were before. Where it cannot be
// finalised because a peer no longer takes part, the exit goes through MPI_Abort, so that the
// launcher ends the others, a stopped one included; the program has said by then what it has to
// say.

#include <string>

namespace tessera::mpi {

/// From now on the program's exit leaves its code in the rank's record, unless the exit that
/// hook_exit() sets up has come first.
void hook_early_exit();

/// From now on the program's exit ends MPI and leaves its code in the rank's record. With a code
/// other than 0 it waits a moment for the others to do the same: mpirun kills all ranks, and drops
/// what they have just written, when the first one returns such a code. Once, when MPI runs: the
/// exit then comes here before it takes down what MPI needs.
void hook_exit();

/// MPI will not be finalised: the program's exit must end the whole job, and no world can follow.
void end_job_at_exit() noexcept;

/// A world lives as long as this. A program that exits meanwhile ends the whole job.
class WorldLife {
 public:
  /// Throws InternalError while another world lives, and CommError after end_job_at_exit().
  WorldLife();
  ~WorldLife();
  WorldLife(const WorldLife&) = delete;
  WorldLife& operator=(const WorldLife&) = delete;
};

/// Ends the job now, with exit code 3. For the case in which going on would let MPI write into
/// memory that is about to be freed, or would never end.
[[noreturn]] void end_job_now(const std::string& reason) noexcept;

}  // namespace tessera::mpi
