#include "tessera/comm/threads/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::threads {
namespace {

std::vector<int> reachable(const WaitGraph& waits_for, int rank) {
  std::vector<bool> seen(waits_for.size(), false);
  std::vector<int> found{rank};
  seen[rank] = true;
  for (size_t next = 0; next < found.size(); ++next)
    for (int peer : waits_for[found[next]]) {
      if (seen[peer]) continue;
      seen[peer] = true;
      found.push_back(peer);
    }
  std::sort(found.begin(), found.end());
  return found;
}

std::string list_ranks(const std::vector<int>& ranks) {
  constexpr size_t kMostListed = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size() && i < kMostListed; ++i)
    text += fmt::format("{}{}", i ? ", " : "", ranks[i]);
  if (ranks.size() > kMostListed) text += fmt::format(" and {} more", ranks.size() - kMostListed);
  return text;
}

/// Waits for no other rank: it computes, hangs, or has ended.
bool ends_a_chain(const WaitGraph& waits_for, int rank) {
  return std::all_of(waits_for[rank].begin(), waits_for[rank].end(),
                     [rank](int peer) { return peer == rank; });
}

}  // namespace

std::string explain_stall(const WaitGraph& waits_for, int rank) {
  const std::vector<int> chain = reachable(waits_for, rank);
  std::vector<int> ends;
  for (int candidate : chain)
    if (ends_a_chain(waits_for, candidate)) ends.push_back(candidate);
  if (ends.empty())
    return list_ranks(chain) + " wait for each other in a cycle: their messages differ in order";
  return fmt::format(
      "the waits end at {}, which {} for no other rank and may be stuck, slow or gone",
      list_ranks(ends), ends.size() == 1 ? "waits" : "wait");
}

}  // namespace tessera::threads
