#include "tessera/comm/mpi/watch.h"

#include <algorithm>
#include <utility>

namespace tessera::mpi {

Watch::Watch(int rank, int size, Clock::duration longest_silence)
    : rank_(rank), size_(size), longest_silence_(longest_silence) {}

std::vector<int> Watch::ask(const std::vector<int>& waited_for, Clock::time_point now) {
  own_waits_ = waited_for;
  std::map<int, Watched> next;
  std::vector<int> open = waited_for;
  for (size_t i = 0; i < open.size(); ++i) {
    const int peer = open[i];
    if (peer == rank_ || peer < 0 || peer >= size_ || next.contains(peer)) continue;
    const auto known = watched_.find(peer);
    Watched& watched = next[peer] = known == watched_.end() ? Watched{now, {}} : known->second;
    for (int further : watched.waits_for) open.push_back(further);
  }
  watched_ = std::move(next);
  std::vector<int> asked;
  for (const auto& [peer, watched] : watched_) asked.push_back(peer);
  return asked;
}

void Watch::heard(int peer, Clock::time_point now) {
  const auto found = watched_.find(peer);
  if (found != watched_.end()) found->second.last_heard = now;
}

void Watch::waits_for(int peer, std::vector<int> peers) {
  const auto found = watched_.find(peer);
  if (found != watched_.end()) found->second.waits_for = std::move(peers);
}

std::optional<Silence> Watch::silent(Clock::time_point now) const {
  const auto longest = std::min_element(
      watched_.begin(), watched_.end(),
      [](const auto& a, const auto& b) { return a.second.last_heard < b.second.last_heard; });
  if (longest == watched_.end() || now - longest->second.last_heard < longest_silence_) return {};
  return Silence{longest->first, now - longest->second.last_heard};
}

threads::WaitGraph Watch::graph() const {
  threads::WaitGraph graph(size_);
  graph[rank_] = own_waits_;
  for (const auto& [peer, watched] : watched_) graph[peer] = watched.waits_for;
  return graph;
}

}  // namespace tessera::mpi
