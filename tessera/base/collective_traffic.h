#pragma once
// What a collective costs, exactly: the messages and bytes that one member sends. Here, below both,
// because the transport's collectives follow these rules and the simulator predicts by them, and
// neither may see the other.
//
//   all-reduce, small (kSmallReduceBytes and less): everyone sends all to everyone; 1 round,
//     (g-1) messages of n bytes.
//   all-reduce, large: member j sums chunk j and sends it back; 2 rounds, 2(g-1) messages, about
//     2n(g-1)/g bytes.
//   all-gather: g-1 messages of one's own block; an empty block is not sent.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tessera {

struct Traffic {
  int64_t messages = 0;
  int64_t bytes = 0;
  bool operator==(const Traffic&) const = default;
};

constexpr int64_t kSmallReduceBytes = 4096;

/// The part of the elements that one member of a large all-reduce sums.
struct ReduceChunk {
  int64_t begin = 0;
  int64_t count = 0;
};

/// Even parts; the first `count % members` have one element more. Some are empty if count <
/// members.
inline ReduceChunk reduce_chunk(int64_t count, int64_t members, int64_t index) {
  const int64_t base = count / members, extra = count % members;
  return {index * base + std::min(index, extra), base + (index < extra ? 1 : 0)};
}

inline Traffic all_reduce_traffic(int members, int member, int64_t count, int64_t element_bytes) {
  const int64_t others = members - 1;
  if (others == 0 || count == 0) return {};
  if (count * element_bytes <= kSmallReduceBytes) return {others, others * count * element_bytes};
  const int64_t own = reduce_chunk(count, members, member).count;
  const int64_t num_chunks = std::min<int64_t>(members, count);  // that are not empty
  return {(num_chunks - (own > 0)) + (own > 0 ? others : 0),
          ((count - own) + own * others) * element_bytes};
}

inline Traffic all_gather_traffic(int member, const std::vector<int64_t>& block_bytes) {
  const int64_t others = static_cast<int64_t>(block_bytes.size()) - 1;
  if (block_bytes[member] == 0) return {};
  return {others, others * block_bytes[member]};
}

}  // namespace tessera
