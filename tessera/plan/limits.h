#pragma once
// The largest counts that are of any use. What lies between these and what a machine can hold is
// refused by what it would cost (lower/workload.h).

#include <cstdint>

namespace tessera {

/// Of workers, over all replicas, stages and parts of the space.
inline constexpr int64_t kMostRanks = 65536;
/// Of the network, one after the other.
inline constexpr int64_t kMostStages = 4096;
/// Of the batch; and pieces of one worker's part along one axis.
inline constexpr int64_t kMostParts = 1 << 20;
/// Of one worker. No machine has more cores to give it.
inline constexpr int64_t kMostThreads = 256;

/// No kernel makes use of more.
inline constexpr int64_t kMostScratchBytes = int64_t{1} << 40;

}  // namespace tessera
