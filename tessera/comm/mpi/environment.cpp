#include "tessera/comm/mpi/environment.h"

#include <cstdlib>
#include <mutex>

#include "tessera/base/text.h"
#include "tessera/comm/mpi/mpi.h"

namespace tessera::mpi {
namespace {

struct Variables {
  const char* rank;
  const char* size;
  int least_size;
};

// Not SLURM_NTASKS: a batch script has that too, before any srun. And one task of a SLURM step is
// how a batch script runs any program: that alone is not a launch.
constexpr Variables kVariables[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", 1},
                                    {"PMI_RANK", "PMI_SIZE", 1},
                                    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", 2}};

std::mutex place_mutex;
std::optional<LaunchedPlace> place_in_mpi;

/// A whole number from 0 on and nothing else.
std::optional<int> count_in(const char* name) {
  const char* text = std::getenv(name);
  if (!text) return {};
  const auto count = read_number<int>(text);
  return count && *count >= 0 ? count : std::nullopt;
}

/// A launcher that speaks PMIx alone does not tell the size.
bool has_pmix_place() { return count_in("PMIX_RANK") && std::getenv("PMIX_NAMESPACE"); }

}  // namespace

std::optional<LaunchedPlace> launched_place() {
  {
    const std::lock_guard lock(place_mutex);
    if (place_in_mpi) return place_in_mpi;
  }
  for (const Variables& names : kVariables) {
    const auto rank = count_in(names.rank);
    const auto size = count_in(names.size);
    if (rank && size && *rank < *size && *size >= names.least_size)
      return LaunchedPlace{*rank, *size};
  }
  return {};
}

std::optional<LaunchedPlace> place_on_this_machine() {
  const auto rank = count_in("OMPI_COMM_WORLD_LOCAL_RANK");
  const auto size = count_in("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (!rank || !size || *rank >= *size) return {};
  return LaunchedPlace{*rank, *size};
}

std::optional<int> local_rank() {
  // The launchers' own variables first: a batch script of SLURM has SLURM_LOCALID too, and what it
  // starts by another launcher inherits that.
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "LOCAL_RANK", "SLURM_LOCALID"})
    if (const auto rank = count_in(name)) return rank;
  return {};
}

void set_place(LaunchedPlace place) {
  const std::lock_guard lock(place_mutex);
  place_in_mpi = place;
}

bool launched() { return launched_place() || has_pmix_place(); }

}  // namespace tessera::mpi
