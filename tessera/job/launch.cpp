#include "tessera/job/launch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"
#include "tessera/comm/mpi/environment.h"
#include "tessera/comm/mpi/mpi.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/claim_resources.h"
#include "tessera/runtime/library_errors.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/runtime/thread_count.h"

namespace tessera {
namespace {

std::vector<std::string> command_line;

/// Of this rank among those of this machine.
Cpus own_share(const LaunchOptions& options) {
  const auto place = mpi::place_on_this_machine();
  if (place)
    return share_of(
        choose_cpus({place->size, options.threads, /*are_processes=*/true}, options.bind),
        place->rank);
  if (options.bind == Bind::kOn)
    throw_error<InvalidInput>(
        "[--bind] the launcher does not say how many ranks share this machine; use srun "
        "--cpu-bind=cores or mpirun --bind-to core");
  return {};
}

void run_mpi_rank(int num_ranks, const LaunchOptions& options,
                  const std::function<void(Transport&)>& body) {
  claim_resources(1, options.threads);
  install_caching_allocator();
  set_blas_threads(options.threads);
  mpi::Options waits;
  waits.timeout = timeout_of(options.timeout_seconds);
  mpi::run_rank(
      [&](Transport& transport) {
        if (transport.size() != num_ranks)
          throw_error<InvalidInput>(
              "[launch] the placement has {}, the launcher started {}; start as many, or "
              "change the parts of the batch (--replicas), --space or --workers",
              counted(num_ranks, "rank"), transport.size());
        set_rank_threads(options.threads);
        const BoundThread bound(own_share(options));
        with_our_errors("", [&] { body(transport); });
      },
      waits);
}

/// How long mpirun may take for the next rank: as long as ranks wait for each other, but not so
/// short that a busy machine cannot do it, nor so long that nobody waits for it.
std::chrono::milliseconds start_limit(double timeout_seconds) {
  return std::clamp<std::chrono::milliseconds>(timeout_of(timeout_seconds),
                                               std::chrono::seconds(10), std::chrono::seconds(60));
}

/// Ends this process.
[[noreturn]] void start_processes(int num_ranks, double timeout_seconds) {
  if (command_line.empty())
    throw_error<InvalidInput>(
        "[launch] a program that starts mpirun itself calls remember_command_line() in main(); or "
        "start it with mpirun -n {}",
        num_ranks);
  // Else each process would start mpirun again, without an end.
  if (mpi::under_launcher())
    throw CommError(
        "[launch] mpirun has started this process without telling it its rank "
        "(OMPI_COMM_WORLD_RANK and _SIZE); use the mpirun of Open MPI");
  mpi::LaunchOptions options;
  options.start_limit = start_limit(timeout_seconds);
  std::exit(checked_exit_code(mpi::launch(num_ranks, command_line, options)));
}

}  // namespace

void remember_command_line(int argc, char** argv) {
  command_line.assign(argv, argv + argc);
  // The program's own path: it may have been found through PATH or a link.
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) command_line[0] = self.string();
  mpi::report_to_launcher();
}

std::string transport_name(const LaunchOptions& options) {
  return mpi::launched() ? "mpi" : options.launch;
}

bool is_secondary_process() {
  const auto place = mpi::launched_place();
  return place && place->rank > 0;
}

void run_on_ranks(int num_ranks, const LaunchOptions& options,
                  const std::function<void(Transport&)>& body) {
  if (options.launch != "threads" && options.launch != "mpi")
    throw_error<InvalidInput>("[launch] {} is not known; use threads or mpi", options.launch);
  if (options.threads < 1)
    throw_error<InvalidInput>("[launch] {} threads per rank; use at least 1", options.threads);
  if (mpi::launched()) return run_mpi_rank(num_ranks, options, body);
  if (options.launch == "mpi") start_processes(num_ranks, options.timeout_seconds);
  run_on_threads(num_ranks, options.threads, options.timeout_seconds, body, options.bind);
}

}  // namespace tessera
