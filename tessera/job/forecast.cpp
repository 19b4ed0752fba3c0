#include "tessera/job/forecast.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/base/quantity.h"
#include "tessera/base/text.h"
#include "tessera/job/choose_device.h"
#include "tessera/runtime/claim_resources.h"

namespace tessera {

std::vector<Room> rooms_of(const Job& job, const std::vector<int64_t>& bytes_of_ranks) {
  const int num_ranks = static_cast<int>(bytes_of_ranks.size());
  std::map<int, Room> rooms;  // by the number of the GPU; of the CPU -1
  for (int rank = 0; rank < num_ranks; ++rank) {
    const int index = device_of_rank(job, rank, num_ranks).index.value_or(-1);
    Room& room = rooms[index];
    ++room.ranks;
    room.needed += bytes_of_ranks[rank];
  }
  std::vector<Room> all;
  for (auto& [index, room] : rooms) {
    const at::Device place(job.device.type, static_cast<c10::DeviceIndex>(index));
    room.place =
        index < 0 ? "this machine, or a limit on this process," : name_of(place) + " as it is now";
    room.free = index < 0 ? free_memory() : device_info(place).free_bytes;
    all.push_back(room);
  }
  return all;
}

Where where_ranks_live(const Job& job) {
  return transport_name(job.launch) == "threads" ? Where::kThisMachine : Where::kAnywhere;
}

Forecast forecast_within_limits(const Job& job, const Lowering& lowering, Where where,
                                const Forecast* beside) {
  Forecast result = forecast(lowering, job.real);
  std::vector<int64_t> bytes_of_ranks;
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
    bytes_of_ranks.push_back(needed);
  }
  if (where == Where::kAnywhere) return result;
  for (const Room& room : rooms_of(job, bytes_of_ranks))
    if (room.needed > room.free)
      throw_error<OutOfMemory>(
          "[memory] {} would take {} together, {} leaves {} free; use a smaller input, "
          "or `tessera plan` to see what it would need",
          counted(room.ranks, "worker"), format_bytes(room.needed), room.place,
          format_bytes(room.free));
  const int64_t claimed = claimed_bytes(lowering.num_ranks(), job.launch.threads);
  const int64_t all_ranks =
      job.device.type == at::kCPU
          ? std::accumulate(bytes_of_ranks.begin(), bytes_of_ranks.end(), int64_t{0})
          : 0;
  if (all_ranks > free_address_space() - claimed)
    throw_error<OutOfMemory>(
        "[memory] {} would take {} and {} of address space besides, the limit (ulimit -v, "
        "ulimit -d) leaves {}; raise it, or use a smaller input, fewer workers or fewer threads",
        counted(lowering.num_ranks(), "worker"), format_bytes(all_ranks), format_bytes(claimed),
        format_bytes(free_address_space()));
  return result;
}

void check_oracle_fits(const Job& job, const Forecast& placement, const OracleBytes& oracle,
                       const Members& ranks_here) {
  // Of the host's memory, which is the oracle's.
  const auto held = [&](const RankForecast& rank) {
    return job.device.type == at::kCPU ? rank.arena_bytes + rank.parameter_bytes : 0;
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
      job.device.type == at::kCPU && job.memory_limit && needed > *job.memory_limit)
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
