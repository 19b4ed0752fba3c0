#include "tessera/job/launch.h"

#include <cstdlib>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/mpi.h"
#include "tessera/runtime/caching_allocator.h"
#include "tessera/runtime/rank_session.h"
#include "tessera/runtime/thread_count.h"

namespace tessera {
namespace {

std::vector<std::string> command_line;

void run_mpi_rank(const LaunchRequest& request, const std::function<void(Transport&)>& body) {
  install_caching_allocator();
  set_blas_threads(request.threads);
  mpi::Options options;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(request.timeout_seconds * 1000));
  mpi::run_rank(
      [&](Transport& transport) {
        if (transport.size() != request.ranks)
          throw_error<InvalidInput>(
              "[launch] the placement has {} ranks, the launcher started {}; start as many, or "
              "change "
              "the parts of the batch (--data; --replicas in train), --space or --workers",
              request.ranks, transport.size());
        set_rank_threads(request.threads);
        body(transport);
      },
      options);
}

}  // namespace

void remember_command_line(int argc, char** argv) {
  command_line.assign(argv, argv + argc);
  // The program's own path: it may have been found through PATH or a link.
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) command_line[0] = self.string();
}

std::string transport_name(const LaunchRequest& request) {
  return mpi::launched() ? "mpi" : request.launch;
}

bool is_secondary_process() {
  if (!mpi::launched()) return false;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return std::string(rank) != "0";
  return false;
}

int run_on_ranks(const LaunchRequest& request, const std::function<void(Transport&)>& body) {
  if (mpi::launched()) {
    run_mpi_rank(request, body);
    return 0;
  }
  if (request.launch == "mpi") return mpi::launch(request.ranks, command_line);
  run_on_threads(request.ranks, request.threads, request.timeout_seconds, body);
  return 0;
}

}  // namespace tessera
