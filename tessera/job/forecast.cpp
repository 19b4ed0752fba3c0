#include "tessera/job/forecast.h"

#include <fstream>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/quantity.h"

namespace tessera {
namespace {

int64_t free_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
    file.ignore(64, '\n');
  }
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

Where where_ranks_live(const Job& job) {
  return transport_name(job.launch) == "threads" ? Where::kThisMachine : Where::kAnywhere;
}

std::vector<RankForecast> forecast_within_limits(const Job& job, const Lowered& lowered,
                                                 int64_t optimiser_copies, Where where) {
  std::vector<RankForecast> forecasts;
  int64_t all_ranks = 0;
  for (const Program& program : lowered.programs) {
    RankForecast forecast = simulate(program, lowered.graph, job.real);
    for (ParameterId id : program.parameters)
      if (const Parameter& held = lowered.graph.parameters()[id];
          held.role == ParameterRole::kTrainable)
        forecast.parameter_bytes +=
            optimiser_copies * held.numel() * static_cast<int64_t>(c10::elementSize(job.real));
    const int64_t needed = forecast.peak_value_bytes + forecast.parameter_bytes;
    if (job.memory_limit && needed > *job.memory_limit)
      throw_error<OutOfMemory>(
          "[--memory] rank {}/{}: needs {} (values {}, parameters {}), the limit is {}; use more "
          "workers, a smaller input or a smaller batch",
          program.rank, program.num_ranks, format_bytes(needed),
          format_bytes(forecast.peak_value_bytes), format_bytes(forecast.parameter_bytes),
          format_bytes(*job.memory_limit));
    all_ranks += needed;
    forecasts.push_back(forecast);
  }
  if (where == Where::kThisMachine && all_ranks > free_memory())
    throw_error<OutOfMemory>(
        "[memory] the {} workers need {} together, this machine has {} free; use a smaller input, "
        "or "
        "`tessera plan` to see what it would need",
        lowered.programs.size(), format_bytes(all_ranks), format_bytes(free_memory()));
  return forecasts;
}

}  // namespace tessera
