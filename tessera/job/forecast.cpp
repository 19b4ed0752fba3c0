#include "tessera/job/forecast.h"

#include <algorithm>

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
    const int64_t needed = of_rank.arena_bytes + of_rank.parameter_bytes;
    if (job.memory_limit && needed > *job.memory_limit)
      throw_error<OutOfMemory>(
          "[--memory] rank {}/{}: needs {} (values {}, parameters {}), the limit is {}; use more "
          "workers, a smaller input or a smaller batch",
          rank, lowering.num_ranks(), format_bytes(needed), format_bytes(of_rank.arena_bytes),
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

void check_oracle_fits(const Job& job, const Forecast& placement, const OracleBytes& oracle,
                       const Members& ranks_here) {
  const auto held = [](const RankForecast& rank) {
    return rank.arena_bytes + rank.parameter_bytes;
  };
  // What the conditioning takes when the placement has gone.
  const auto with_oracle = [&](int64_t placed) {
    return std::max(placed + oracle.besides_placement(), oracle.while_measuring());
  };
  const auto refuse = [&](const char* place, int64_t needed, const std::string& limit) {
    throw_error<OutOfMemory>(
        "[{}] verify compares with one worker that trains the whole network, which takes {} on "
        "rank 0 (values {}, weights {}) and {} with what it is compared with; {}; use a smaller "
        "input or batch, or a network of smaller width: what is exact there is exact here",
        place, format_bytes(oracle.besides_placement()), format_bytes(oracle.values),
        format_bytes(oracle.weights), format_bytes(needed), limit);
  };
  if (const int64_t needed = with_oracle(held(placement.ranks[0]));
      job.memory_limit && needed > *job.memory_limit)
    refuse("--memory", needed, fmt::format("the limit is {}", format_bytes(*job.memory_limit)));
  if (ranks_here.empty()) return;
  int64_t here = 0;
  for (int rank : ranks_here) here += held(placement.ranks[rank]);
  if (const int64_t needed = with_oracle(here); needed > free_memory())
    refuse("memory", needed,
           fmt::format("this machine, or a limit on this process, leaves {} free",
                       format_bytes(free_memory())));
}

}  // namespace tessera
