#include "tessera/job/forecast.h"

#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/runtime/claim_resources.h"

namespace tessera {
Where where_ranks_live(const Job& job) {
  return transport_name(job.launch) == "threads" ? Where::kThisMachine : Where::kAnywhere;
}

Forecast forecast_within_limits(const Job& job, const Lowering& lowering, Where where,
                                const Forecast* beside) {
  Forecast result = forecast(lowering, job.real);
  int64_t all_ranks = 0;
  for (int rank = 0; rank < lowering.num_ranks(); ++rank) {
    RankForecast& of_rank = result.ranks[rank];
    if (beside != nullptr) of_rank.parameter_bytes = beside->ranks[rank].parameter_bytes;
    const int64_t needed = of_rank.peak_value_bytes + of_rank.parameter_bytes;
    if (job.memory_limit && needed > *job.memory_limit)
      throw_error<OutOfMemory>(
          "[--memory] rank {}/{}: needs {} (values {}, parameters {}), the limit is {}; use more "
          "workers, a smaller input or a smaller batch",
          rank, lowering.num_ranks(), format_bytes(needed), format_bytes(of_rank.peak_value_bytes),
          format_bytes(of_rank.parameter_bytes), format_bytes(*job.memory_limit));
    all_ranks += needed;
  }
  if (where == Where::kThisMachine && all_ranks > free_memory())
    throw_error<OutOfMemory>(
        "[memory] {} would take {} together, this machine, or a limit on this process, "
        "leaves {} free; use a smaller input, "
        "or `tessera plan` to see what it would need",
        counted(lowering.num_ranks(), "worker"), format_bytes(all_ranks),
        format_bytes(free_memory()));
  const int64_t claimed = claimed_bytes(lowering.num_ranks(), job.launch.threads);
  if (where == Where::kThisMachine && all_ranks > free_address_space() - claimed)
    throw_error<OutOfMemory>(
        "[memory] {} would take {} and {} of address space besides, the limit (ulimit -v, "
        "ulimit -d) leaves {}; raise it, or use a smaller input, fewer workers or fewer threads",
        counted(lowering.num_ranks(), "worker"), format_bytes(all_ranks), format_bytes(claimed),
        format_bytes(free_address_space()));
  return result;
}

}  // namespace tessera
