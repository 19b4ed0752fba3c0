#pragma once
// Who takes part in something: a collective, a stage, the holders of a parameter.

#include <algorithm>
#include <numeric>
#include <vector>

namespace tessera {

/// Ranks, ascending and without repetition.
using Members = std::vector<int>;

/// All ranks of a world.
inline Members everyone(int num_ranks) {
  Members ranks(num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline bool holds(const Members& members, int rank) {
  return std::binary_search(members.begin(), members.end(), rank);
}

}  // namespace tessera
