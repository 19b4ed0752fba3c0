#pragma once
// The messages that a collective is made of: what a member sends to and receives from each of the
// others, round by round. Here, below all who ask: the transport's collectives post these messages,
// the checker proves their order, and the simulator counts them.
//
//   all-reduce, small (kSmallReduceBytes and less): everyone sends all to everyone; 1 round,
//     g-1 messages of n bytes.
//   all-reduce, large: member j sums chunk j and sends it back; 2 rounds, 2(g-1) messages, about
//     2n(g-1)/g bytes.
//   all-gather: g-1 messages of one's own block.
//
// Nothing is sent where there are no elements.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera {

inline constexpr int64_t kSmallReduceBytes = 4096;

/// Consecutive elements of the buffer that a collective works on.
struct Elements {
  int64_t begin = 0;
  int64_t count = 0;
};

struct MemberMessage {
  int member = 0;  // the other one
  Elements elements;
};

/// By ascending members.
struct CollectiveRound {
  std::vector<MemberMessage> sends;
  std::vector<MemberMessage> receives;
};

inline bool is_small_reduce(int64_t count, int64_t element_bytes) {
  return count * element_bytes <= kSmallReduceBytes;
}

/// The elements that a member sums in the first round: all of a small reduction, else an even part,
/// where the first `count % members` members have one more. Some are empty if count < members.
inline Elements reduce_chunk(int64_t count, int64_t element_bytes, int64_t members, int64_t index) {
  if (is_small_reduce(count, element_bytes)) return {0, count};
  const int64_t base = count / members, extra = count % members;
  return {index * base + std::min(index, extra), base + (index < extra ? 1 : 0)};
}

/// To and from each other member what `sent` and `received` say.
template <class Sent, class Received>
CollectiveRound with_each_member(int members, int own, Sent sent, Received received) {
  CollectiveRound round;
  for (int other = 0; other < members; ++other) {
    if (other == own) continue;
    if (const Elements to = sent(other); to.count > 0) round.sends.push_back({other, to});
    if (const Elements from = received(other); from.count > 0)
      round.receives.push_back({other, from});
  }
  return round;
}

/// The terms of the sums. What a member receives is for its own chunk.
inline CollectiveRound reduce_terms(int members, int own, int64_t count, int64_t element_bytes) {
  const auto chunk = [=](int member) {
    return reduce_chunk(count, element_bytes, members, member);
  };
  return with_each_member(members, own, chunk, [=](int) { return chunk(own); });
}

/// The sums of a large reduction, each to everyone; empty for a small one.
inline CollectiveRound reduce_sums(int members, int own, int64_t count, int64_t element_bytes) {
  if (is_small_reduce(count, element_bytes)) return {};
  const auto chunk = [=](int member) {
    return reduce_chunk(count, element_bytes, members, member);
  };
  return with_each_member(
      members, own, [=](int) { return chunk(own); }, chunk);
}

/// `counts` has the elements of each member's block; the blocks lie in that order.
inline CollectiveRound gather_blocks(int own, const std::vector<int64_t>& counts) {
  std::vector<Elements> blocks;
  int64_t begin = 0;
  for (int64_t count : counts) {
    blocks.push_back({begin, count});
    begin += count;
  }
  return with_each_member(
      static_cast<int>(counts.size()), own, [&](int) { return blocks[own]; },
      [&](int member) { return blocks[member]; });
}

}  // namespace tessera
