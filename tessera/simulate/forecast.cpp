#include "tessera/simulate/forecast.h"

#include "tessera/base/slow_work.h"
#include "tessera/lower/arena.h"
#include "tessera/lower/rank_classes.h"
#include "tessera/lower/workload.h"

namespace tessera {
namespace {

RankForecast of_program(const Program& program, at::ScalarType real) {
  RankForecast forecast = simulate(program, real);
  forecast.arena_bytes = lay_out(program, real).bytes;
  return forecast;
}

}  // namespace

Forecast forecast(const Lowering& lowering, at::ScalarType real) {
  Forecast result;
  if (lowering.num_ranks() <= kMostRanksProved) {
    for (const Program& program : lowering.programs()) {
      result.classes.push_back({program.rank});
      result.ranks.push_back(of_program(program, real));
    }
    return result;
  }
  result.classes = rank_classes(lowering.step());
  result.ranks.resize(lowering.num_ranks());
  const int64_t num_kinds = std::ssize(result.classes);
  check_kinds(workload(lowering.graph(), lowering.plan()), num_kinds);
  SlowWork progress("planning", "kinds of workers are looked at", num_kinds);
  for (const std::vector<int>& alike : result.classes) {
    const Program program = lowering.program(alike.front());
    const RankForecast of_first = of_program(program, real);
    for (int rank : alike) result.ranks[rank] = simulate_as(rank, program, of_first, real);
    progress.advance();
  }
  return result;
}

}  // namespace tessera
