#include "tessera/lower/reduction_writer.h"

#include <algorithm>
#include <numeric>

#include "tessera/base/collective_rounds.h"

namespace tessera {
namespace {

/// What could be sent in the time that a message takes before its first element arrives.
constexpr double kLatencyElements = 1 << 14;

/// What each round of a sum sends, by the first member, whose share is the largest: the same on all
/// ranks.
std::vector<double> elements_of_rounds(const Members& members, int64_t count) {
  const auto elements = [](const std::vector<MemberMessage>& messages) {
    int64_t sum = 0;
    for (const MemberMessage& message : messages) sum += message.elements.count;
    return sum;
  };
  std::vector<double> rounds;
  for (const CollectiveRound& round :
       reduce_rounds(static_cast<int>(members.size()), /*own=*/0, count))
    rounds.push_back(kLatencyElements + static_cast<double>(std::max(elements(round.sends),
                                                                     elements(round.receives))));
  return rounds;
}

}  // namespace

ReductionWriter::Lane& ReductionWriter::lane_of(const Members& members) {
  for (Lane& lane : lanes_)
    if (lane.members == members) return lane;
  Lane& lane = lanes_.emplace_back();
  lane.members = members;
  lane.meets_kernels = work_.left(members) > 0;
  return lane;
}

void ReductionWriter::expect(const Members& members, int64_t elements) {
  Lane& lane = lane_of(members);
  lane.largest = std::max(lane.largest, elements);
  for (double round : elements_of_rounds(members, elements)) lane.to_send += round;
}

void ReductionWriter::start(int channel, BufferId buffer, const Members& members) {
  Lane& lane = lane_of(members);
  lane.waiting.push_back({channel, buffer});
  if (lane.current.empty() && lane.meets_kernels) start_waiting(&lane);
}

void ReductionWriter::start_waiting(Lane* lane) {
  const auto elements = [&] { return writer_.buffer(lane->waiting.front().buffer).box.volume(); };
  int64_t together = 0;
  while (!lane->waiting.empty() &&
         (lane->current.empty() || together + elements() <= lane->largest)) {
    together += elements();
    start_first(lane);
  }
  rounds_posted(lane);
}

void ReductionWriter::start_first(Lane* lane) {
  Reduction reduction = lane->waiting.front();
  lane->waiting.pop_front();
  const Buffer& summed = writer_.buffer(reduction.buffer);
  const int members = static_cast<int>(lane->members.size());
  const int64_t count = summed.box.volume();
  // As much as the first member needs, whose share is the largest: ranks that are alike stay so.
  if (const int64_t received = reduce_scratch(members, /*own=*/0, count); received > 0)
    reduction.received = writer_.add_buffer(summed.name + " of others", BufferKind::kReduction,
                                            Box{{0, received}}, summed.element);
  reduction.rounds = elements_of_rounds(lane->members, count);
  reduction.posted = 1;
  writer_.append(
      StartReduce{reduction.channel, reduction.buffer, reduction.received, lane->members});
  lane->current.push_back(std::move(reduction));
}

void ReductionWriter::rounds_posted(Lane* lane) {
  double sent = 0;
  for (const Reduction& each : lane->current) sent += each.rounds[each.posted - 1];
  lane->work = 0;
  lane->work_to_hide = work_.left(lane->members) * sent / std::max(lane->to_send, sent);
}

void ReductionWriter::step(Lane* lane) {
  const auto is_last = [](const Reduction& each) { return each.posted == std::ssize(each.rounds); };
  if (std::ranges::all_of(lane->current, is_last)) return finish(lane);
  for (Reduction& each : lane->current) {
    if (is_last(each)) continue;
    writer_.append(
        AdvanceReduce{each.channel, each.buffer, each.received, lane->members, each.posted});
    lane->to_send -= each.rounds[each.posted++ - 1];
  }
  rounds_posted(lane);
}

void ReductionWriter::finish(Lane* lane) {
  for (const Reduction& each : lane->current) {
    writer_.append(
        FinishReduce{each.channel, each.buffer, each.received, lane->members, each.posted});
    lane->to_send -= std::accumulate(each.rounds.begin() + each.posted - 1, each.rounds.end(), 0.0);
  }
  lane->current.clear();
  start_waiting(lane);
}

void ReductionWriter::input_gradient_ran(NodeId node, const Members& ranks) {
  advance(ranks, work_.input_gradient(node));
}

void ReductionWriter::weight_gradient_ran(NodeId node, const Members& ranks) {
  advance(ranks, work_.weight_gradient(node));
}

void ReductionWriter::advance(const Members& ranks, double work) {
  if (work == 0) return;
  work_.ran(ranks, work);
  for (Lane& lane : lanes_) {
    if (lane.current.empty() || !std::ranges::includes(ranks, lane.members)) continue;
    lane.work += work;
    if (lane.work >= lane.work_to_hide) step(&lane);
  }
}

void ReductionWriter::finish_all() {
  for (Lane& lane : lanes_) {
    if (lane.current.empty()) start_waiting(&lane);
    while (!lane.current.empty()) finish(&lane);
  }
}

}  // namespace tessera
