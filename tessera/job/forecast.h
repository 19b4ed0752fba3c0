#pragma once
// Whether a job fits, before anything is allocated.

#include "tessera/job/job.h"
#include "tessera/proof/verify.h"
#include "tessera/simulate/forecast.h"

namespace tessera {

enum class Where { kAnywhere, kThisMachine };

/// Ranks that are threads are all here; processes may be anywhere, and must decide alike.
Where where_ranks_live(const Job& job);

/// A memory that some ranks of this machine share, and what they need of it.
struct Room {
  std::string place;  // for people
  int ranks = 0;
  int64_t needed = 0;
  int64_t free = 0;
};
/// That of each device on which ranks of this machine, which need so many bytes each, compute.
std::vector<Room> rooms_of(const Job& job, const std::vector<int64_t>& bytes_of_ranks);

/// Forecasts every rank; the programs of a small world are proved together. Throws OutOfMemory
/// where a rank needs more than the job's limit or, where all ranks live on this machine, where
/// those on one device need more together than it has free. `beside` is a step whose parameters,
/// gradients and optimiser's state stay while this one runs: validation in the middle of training.
Forecast forecast_within_limits(const Job& job, const Lowering& lowering, Where where,
                                const Forecast* beside = nullptr);

/// Whether the oracle of a proof, which is rank 0's and computes on the CPU, fits beside what ranks
/// hold there: within the job's limit, and where ranks are known to live here, within what the
/// machine has free. Throws OutOfMemory.
void check_oracle_fits(const Job& job, const Forecast& placement, const OracleBytes& oracle,
                       const Members& ranks_here);

}  // namespace tessera
