#include "tessera/comm/mpi/mpi.h"

#include <cstdlib>
#include <limits>
#include <mutex>

#include "tessera/base/error.h"
#include "tessera/comm/borrowed.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/mpi/environment.h"
#include "tessera/comm/mpi/mpi_transport.h"
#include "tessera/comm/mpi/process_end.h"
#include "tessera/comm/mpi/rank_record.h"
#include "tessera/comm/threads/first_error.h"

namespace tessera::mpi {
namespace {

void check(const Options& options) {
  constexpr int64_t kMostChunkBytes = std::numeric_limits<int>::max();
  if (options.timeout.count() < 1 || options.heartbeat.count() < 1)
    throw_error<InvalidInput>("[mpi] timeout of {} ms and heartbeat of {} ms; use at least 1 ms",
                              options.timeout.count(), options.heartbeat.count());
  if (options.chunk_bytes < 1 || options.chunk_bytes > kMostChunkBytes)
    throw_error<InvalidInput>("[mpi] chunks of {} bytes; use 1 to {}", options.chunk_bytes,
                              kMostChunkBytes);
}

/// The first call starts MPI; whether it comes up or not, the exit is to leave its traces.
std::unique_ptr<MpiTransport> start(const Options& options) {
  static std::once_flag hooked;
  const auto hook = [] { std::call_once(hooked, hook_exit); };
  record_start();
  try {
    auto transport = std::make_unique<MpiTransport>(options);
    hook();
    return transport;
  } catch (...) {
    hook();
    throw;
  }
}

std::unique_ptr<MpiTransport> connect(const Options& options) {
  check(options);
  std::unique_ptr<MpiTransport> transport = start(options);
  const LaunchedPlace seen{transport->rank(), transport->size()};
  const LaunchedPlace launched = launched_place().value_or(seen);
  set_place(seen);
  if (launched.size != seen.size)
    throw_error<InvalidInput>(
        "[mpi] the launcher has started {} processes and MPI sees {}: it is the launcher of "
        "another MPI, or its variables were left in the environment; use the mpirun of the MPI "
        "that Tessera was built with, or srun --mpi=pmix",
        launched.size, seen.size);
  return transport;
}

}  // namespace

bool available() { return true; }

bool under_launcher() { return std::getenv(kRecordFolderVariable) != nullptr; }

void report_to_launcher() {
  if (!under_launcher()) return;
  record_start();
  hook_early_exit();
}

std::unique_ptr<Transport> create(const Options& options) { return staging(connect(options)); }

void run_rank(const std::function<void(Transport&)>& body, const Options& options) {
  const std::unique_ptr<MpiTransport> transport = connect(options);
  threads::FirstError error;
  const auto fail = [&](const char* reason) {
    error.report(transport->rank(), transport->size(), std::current_exception());
    transport->abort(reason);
  };
  try {
    const std::unique_ptr<Transport> carrier =
        staging(std::make_unique<BorrowedTransport>(*transport));
    body(*carrier);
    transport->leave();
  } catch (const std::exception& e) {
    fail(e.what());
  } catch (...) {
    fail("it threw something that is not a std::exception");
  }
  error.rethrow();
}

}  // namespace tessera::mpi
