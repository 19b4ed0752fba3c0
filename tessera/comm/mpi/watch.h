#pragma once
// Is the rank that we wait for still there, and whom does it wait for itself? While its rank waits,
// the communication thread asks the ranks in question once per heartbeat for a sign of life, and
// the ranks that those wait for, and so on: the answers give the graph of waits that leads from
// here to the rank that holds everyone up. Nobody is asked while nobody waits.
//
// Plain bookkeeping without communication; used by the communication thread only.
//
// Example, once per heartbeat:
//   for (int peer : watch.ask(waited_for, now)) send_ping(peer);
//   if (auto silence = watch.silent(now)) fail(...);

#include <map>
#include <optional>
#include <vector>

#include "tessera/comm/mpi/batch.h"
#include "tessera/comm/threads/diagnosis.h"

namespace tessera::mpi {

struct Silence {
  int rank = 0;
  std::chrono::duration<double> length{0};
};

class Watch {
 public:
  Watch(int rank, int size, Clock::duration longest_silence);

  /// The ranks to be asked now, for a rank that waits for `waited_for`. A rank that is watched anew
  /// counts as heard from now.
  std::vector<int> ask(const std::vector<int>& waited_for, Clock::time_point now);

  /// `peer` has given a sign of life.
  void heard(int peer, Clock::time_point now);
  void waits_for(int peer, std::vector<int> peers);

  /// A watched rank that has been silent for too long, the longest silent first.
  std::optional<Silence> silent(Clock::time_point now) const;

  /// Who waits for whom, as far as known.
  threads::WaitGraph graph() const;

 private:
  struct Watched {
    Clock::time_point last_heard;
    std::vector<int> waits_for;
  };

  int rank_;
  int size_;
  Clock::duration longest_silence_;
  std::vector<int> own_waits_;
  std::map<int, Watched> watched_;
};

}  // namespace tessera::mpi
