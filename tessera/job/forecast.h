#pragma once
// Whether a job fits, before anything is allocated.

#include <vector>

#include "tessera/job/job.h"
#include "tessera/lower/lower.h"
#include "tessera/simulate/simulator.h"

namespace tessera {

enum class Where { kAnywhere, kThisMachine };

/// Ranks that are threads are all here; processes may be anywhere, and must decide alike.
Where where_ranks_live(const Job& job);

/// Forecasts every rank. Throws OutOfMemory where a rank needs more than the job's limit or, where
/// all ranks live on this machine, where they need more together than it has free.
/// `optimiser_copies` is the optimiser's state in copies of the trainable parameters.
std::vector<RankForecast> forecast_within_limits(const Job& job, const Lowered& lowered,
                                                 int64_t optimiser_copies, Where where);

}  // namespace tessera
