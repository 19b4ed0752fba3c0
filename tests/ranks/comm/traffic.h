#pragma once
// What a collective of g members may cost: the bytes that all members together send, which the
// algorithm cannot change (every member's part reaches g-1 others, and so does every term), and the
// most messages of one member.

#include <bit>
#include <cstdint>

namespace tessera {

struct Traffic {
  int64_t most_messages = 0;  // of one member
  int64_t bytes_of_all = 0;
};

inline int64_t num_rounds(int64_t members) {
  return std::bit_width(static_cast<uint64_t>(members) - 1);  // ceil(log2 members)
}

inline Traffic all_reduce_traffic(int64_t members, int64_t bytes) {
  return {4 * num_rounds(members), 2 * bytes * (members - 1)};
}

inline Traffic all_gather_traffic(int64_t members, int64_t bytes_of_all_blocks) {
  return {2 * num_rounds(members), bytes_of_all_blocks * (members - 1)};
}

inline Traffic broadcast_traffic(int64_t members, int64_t bytes) {
  return {num_rounds(members), bytes * (members - 1)};
}

}  // namespace tessera
