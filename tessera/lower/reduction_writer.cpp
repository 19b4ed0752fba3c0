#include "tessera/lower/reduction_writer.h"

#include <algorithm>

#include "tessera/base/collective_rounds.h"

namespace tessera {

ReductionWriter::Lane& ReductionWriter::lane_of(const Members& members) {
  for (Lane& lane : lanes_)
    if (lane.members == members) return lane;
  lanes_.push_back({members, std::nullopt, {}});
  return lanes_.back();
}

void ReductionWriter::start(int channel, BufferId buffer, const Members& members) {
  Lane& lane = lane_of(members);
  lane.waiting.push_back({channel, buffer});
  if (!lane.current)
    start_next(&lane);
  else if (!lane.meets_kernels)
    finish(&lane);
}

void ReductionWriter::start_next(Lane* lane) {
  if (lane->waiting.empty()) return;
  Reduction next = lane->waiting.front();
  lane->waiting.pop_front();
  const Buffer& summed = writer_.buffer(next.buffer);
  const int members = static_cast<int>(lane->members.size());
  const int64_t count = summed.box.volume();
  // As much as the first member needs, whose share is the largest: ranks that are alike stay so.
  if (const int64_t received = reduce_scratch(members, /*own=*/0, count); received > 0)
    next.received = writer_.add_buffer(summed.name + " of others", BufferKind::kReduction,
                                       Box{{0, received}}, summed.element);
  next.rounds = static_cast<int>(reduce_rounds(members, /*own=*/0, count).size());
  next.posted = std::min(next.rounds, 1);
  writer_.append(StartReduce{next.channel, next.buffer, next.received, lane->members});
  lane->current = next;
}

void ReductionWriter::step(Lane* lane) {
  if (!lane->current) return;
  Reduction& current = *lane->current;
  if (current.posted == current.rounds) return finish(lane);
  writer_.append(AdvanceReduce{current.channel, current.buffer, current.received, lane->members,
                               current.posted++});
}

void ReductionWriter::finish(Lane* lane) {
  const Reduction& current = *lane->current;
  writer_.append(FinishReduce{current.channel, current.buffer, current.received, lane->members,
                              current.posted});
  lane->current.reset();
  start_next(lane);
}

void ReductionWriter::advance(const Members& ranks) {
  for (Lane& lane : lanes_)
    if (std::ranges::includes(ranks, lane.members)) {
      lane.meets_kernels = true;
      step(&lane);
    }
}

void ReductionWriter::finish_all() {
  for (Lane& lane : lanes_)
    while (lane.current) finish(&lane);
}

}  // namespace tessera
