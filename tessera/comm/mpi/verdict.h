#pragma once
// How a launched job ended. The ranks' own word decides: mpirun may fail after they have ended
// well, and may end well without having started one. What mpirun said on stderr and its own end
// only tell why a rank has not said anything. Which rank's end is the cause and which only followed
// is decided here.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/mpi/rank_record.h"

namespace tessera::mpi {

struct JobEnd {
  std::vector<RankRecord> ranks;
  std::string mpirun_text;       // the last of its stderr
  int mpirun_status = 0;         // as waitpid() gives it
  std::optional<int> forwarded;  // the signal that was passed on to the ranks
  bool was_stuck = false;        // mpirun did not end by itself after a rank was in trouble or late
  /// So long nobody came, and the job was ended for it.
  std::optional<std::chrono::milliseconds> late_after;
};

struct Verdict {
  int exit_code = 0;
  std::vector<std::string> lines;  // for the user; the cause first
};

Verdict judge(const JobEnd& end);

}  // namespace tessera::mpi
