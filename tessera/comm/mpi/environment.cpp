// What the launcher has put into the environment of its processes.

#include "tessera/comm/mpi/environment.h"

#include <cstdlib>

#include "tessera/comm/mpi/mpi.h"

namespace tessera::mpi {

std::optional<int> launched_size() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  // Not SLURM_NTASKS: a batch script has that too, before any srun.
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks && std::getenv("SLURM_PROCID")) return std::atoi(tasks);
  return {};
}

int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return -1;
}

// One task of a SLURM step is how a batch script runs any program: that alone is not a launch.
bool launched() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") || std::getenv("PMI_SIZE") || std::getenv("PMIX_RANK"))
    return true;
  return launched_size().value_or(1) > 1;
}

}  // namespace tessera::mpi
