// The transport in a build that has found no MPI: it says so, and what to install.

#include "tessera/base/error.h"
#include "tessera/comm/mpi/mpi.h"

namespace tessera::mpi {
namespace {

[[noreturn]] void throw_missing() {
  throw_error<Unsupported>(
      "[mpi] this build has no MPI; install libopenmpi-dev and openmpi-bin and build again, or run "
      "the ranks as threads");
}

}  // namespace

bool available() { return false; }

bool under_launcher() { return false; }

void report_to_launcher() {}

std::unique_ptr<Transport> create(const Options&) { throw_missing(); }

void run_rank(const std::function<void(Transport&)>&, const Options&) { throw_missing(); }

int launch(int, const std::vector<std::string>&, const LaunchOptions&) { throw_missing(); }

}  // namespace tessera::mpi
