#pragma once
// Where the ranks of a job live: threads of this process (the default), processes that we start
// under mpirun (launch mpi), or the world that mpirun or srun has started around us.
//
// A C++ program runs the same way as the command line: `./program` has its ranks as threads, and
// `mpirun -n 4 ./program` as processes. Only a program that starts mpirun itself (launch mpi) must
// call remember_command_line() first.

#include <functional>
#include <string>

#include "tessera/comm/transport.h"
#include "tessera/runtime/binding.h"

namespace tessera {

struct LaunchOptions {
  std::string launch = "threads";  // or "mpi"
  int threads = 1;                 // per rank
  double timeout_seconds = 600;    // of a wait for another rank
  Bind bind = Bind::kAuto;         // ranks to cores of their own
};

/// Which transport the ranks will have: "threads" or "mpi".
std::string transport_name(const LaunchOptions& options);

/// Runs `body` on every rank; where ranks are processes, on this one's. Errors of a body are
/// rethrown, with the rank in the message. With launch mpi outside of mpirun this process becomes
/// the launcher: it starts its own command line once for each rank, and ends with their exit code.
void run_on_ranks(int num_ranks, const LaunchOptions& options,
                  const std::function<void(Transport&)>& body);

/// The command line, as main() got it: ranks that we start get the same.
void remember_command_line(int argc, char** argv);

/// Whether this process is one of several started around us, and not the first: it keeps quiet.
bool is_secondary_process();

}  // namespace tessera
