#pragma once
// In which order a pipeline's stages work on micro-batches. docs/pipeline.md draws them.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

enum class ScheduleKind {
  kSequential,             // one micro-batch after the other, one stage at a time
  kGpipe,                  // all forwards, then all backwards
  kOneForwardOneBackward,  // backwards as early as they can; few micro-batches in flight
  kInterleaved,            // the same with several chunks of the network on every stage
  kZeroBubble,             // weight gradients apart from input gradients, to fill the gaps
  kGems,                   // every second micro-batch runs through the stages the other way
};

/// Where a stage's part of the network runs for a micro-batch: GEMS mirrors every second one.
int stage_for(int stage, int64_t micro_batch, int num_stages, ScheduleKind kind);

/// "sequential", "gpipe", "1f1b", "interleaved", "zero-bubble", "gems".
std::string to_string(ScheduleKind kind);
/// Throws InvalidInput, naming the legal ones.
ScheduleKind parse_schedule(const std::string& name);
std::vector<std::string> schedule_names();

}  // namespace tessera
