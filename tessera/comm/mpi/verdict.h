#pragma once
// How a launched job ended: from what its ranks left behind, what mpirun said on stderr and its own
// end. Which rank's end is the cause and which only followed is decided here.

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
};

struct Verdict {
  int exit_code = 0;
  std::vector<std::string> lines;  // for the user; the cause first
};

Verdict judge(const JobEnd& end);

}  // namespace tessera::mpi
