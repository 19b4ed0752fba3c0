#pragma once
// What a collective costs by closed formulas: the messages and bytes that one member sends.

#include "tessera/base/collective_rounds.h"

namespace tessera {

struct Traffic {
  int64_t messages = 0;
  int64_t bytes = 0;
  bool operator==(const Traffic&) const = default;
};

inline Traffic all_reduce_traffic(int members, int member, int64_t count, int64_t element_bytes) {
  const int64_t others = members - 1;
  if (others == 0 || count == 0) return {};
  if (count * element_bytes <= kSmallReduceBytes) return {others, others * count * element_bytes};
  const int64_t own = reduce_chunk(count, element_bytes, members, member).count;
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
