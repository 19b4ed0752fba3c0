#include "tessera/comm/mpi/process_end.h"

#include <stdlib.h>

#include <atomic>
#include <cstdio>

#include "tessera/base/error.h"
#include "tessera/base/exit_code.h"
#include "tessera/base/standard_streams.h"
#include "tessera/comm/mpi/rank_record.h"
#include "tessera/comm/mpi/wire.h"

namespace tessera::mpi {
namespace {

std::atomic<bool> must_end_job{false};
std::atomic<bool> world_lives{false};

/// mpirun kills all ranks when the first one returns a code other than 0; before that the others
/// should have said how they end.
void leave_word(int exit_code) {
  record_exit(exit_code);
  if (exit_code != 0) await_exits(std::chrono::milliseconds(1'000));
}

void at_early_exit(int exit_code, void*) {
  std::fflush(nullptr);
  leave_word(exit_code);
}

void at_exit(int exit_code, void*) {
  const bool abort = must_end_job || world_lives;
  if (abort && exit_code == 0) exit_code = kRankFailed;
  std::fflush(nullptr);  // MPI_Abort does not
  leave_word(exit_code);
  if (abort) abort_job(exit_code);
  finalise();
}

}  // namespace

void hook_early_exit() { on_exit(at_early_exit, nullptr); }

// on_exit and not atexit: only it gets the exit code.
void hook_exit() { on_exit(at_exit, nullptr); }

void end_job_at_exit() noexcept { must_end_job = true; }

WorldLife::WorldLife() {
  if (must_end_job)
    throw CommError(
        "[mpi] an earlier world of this process lost a rank, so no other can follow; start the "
        "program again");
  TESSERA_CHECK(!world_lives.exchange(true), "there is one world of MPI ranks at a time");
}

WorldLife::~WorldLife() { world_lives = false; }

void end_job_now(const std::string& reason) noexcept {
  record_failure(FailureKind::kFound, reason);
  record_exit(kRankFailed);
  print_error("tessera: {}\n", reason);
  std::fflush(nullptr);
  abort_job(kRankFailed);
}

}  // namespace tessera::mpi
