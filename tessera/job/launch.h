#pragma once
// Where the ranks of a command live: threads of this process (the default), processes that we start
// under mpirun (--launch mpi), or the world that mpirun or srun has started around us.

#include <functional>
#include <string>
#include <vector>

#include "tessera/comm/transport.h"

namespace tessera {

struct LaunchRequest {
  std::string launch = "threads";  // or "mpi"
  int ranks = 1;
  int threads = 1;  // per rank
  double timeout_seconds = 600;
};

/// Which transport the ranks will have: "threads" or "mpi".
std::string transport_name(const LaunchRequest& request);

/// Runs `body` on every rank and returns the exit code: 0, or that of the ranks which we started.
/// Errors of a body are rethrown, with the rank in the message. `body` prints on rank 0 alone.
int run_on_ranks(const LaunchRequest& request, const std::function<void(Transport&)>& body);

/// The command line, as main() got it: ranks that we start get the same.
void remember_command_line(int argc, char** argv);

/// Whether this process is one of several started around us, and not the first: it keeps quiet.
bool is_secondary_process();

}  // namespace tessera
