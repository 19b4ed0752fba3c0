#pragma once
// What the tests of schedules share.

#include <algorithm>
#include <string>
#include <vector>

#include "tessera/lower/schedule.h"

namespace tessera {

using enum ScheduleKind;
inline constexpr ScheduleKind kAll[] = {kSequential,  kGpipe,      kOneForwardOneBackward,
                                        kInterleaved, kZeroBubble, kGems};
using Tasks = std::vector<ScheduledTask>;

/// Begins with a new line, as the drawings below do.
inline std::string drawn(const Pipeline& pipeline, ScheduleKind kind) {
  return "\n" + draw_schedule(schedule_tasks(pipeline, kind), pipeline.num_stages);
}

inline double end_of(const Tasks& tasks) {
  double end = 0;
  for (const ScheduledTask& scheduled : tasks) end = std::max(end, scheduled.end);
  return end;
}

/// Chunks down the stages and up again: those of a U-Net's encoder and decoder, with its skips.
inline Pipeline u_net(int num_stages, int micro_batches) {
  const int num_chunks = 2 * num_stages - 1;
  Pipeline pipeline = Pipeline::chain(num_stages, num_chunks, micro_batches);
  for (int chunk = num_stages; chunk < num_chunks; ++chunk) {
    const int mirror = num_chunks - 1 - chunk;
    pipeline.stage_of_chunk[chunk] = mirror;
    if (mirror != chunk - 1)
      pipeline.chunks_before[chunk].insert(pipeline.chunks_before[chunk].begin(), mirror);
  }
  return pipeline;
}

}  // namespace tessera
