#pragma once
// How a process ends when MPI cannot be finalised because a peer no longer takes part: through
// MPI_Abort, so that the launcher ends the others, a stopped one included. It does so at its exit,
// when the program has said what it has to say.

#include <string>

namespace tessera::mpi {

/// From now on the program's exit leaves its code in the rank's record. With a code other than 0 it
/// waits a moment for the others to do the same: mpirun kills all ranks, and drops what they have
/// just written, when the first one returns such a code.
void hook_exit();

/// MPI will not be finalised: the program's exit must end the whole job.
void end_job_at_exit() noexcept;

/// Ends the job now, with exit code 3. For the case in which going on would let MPI write into
/// memory that is about to be freed, or would never end.
[[noreturn]] void end_job_now(const std::string& reason) noexcept;

}  // namespace tessera::mpi
