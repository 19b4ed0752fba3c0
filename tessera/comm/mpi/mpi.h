#pragma once
// Ranks as processes under `mpirun` or `srun`: one transport per process, on one machine or many.
//
// All MPI calls run on one communication thread per process, which sleeps while nothing is
// outstanding and naps while it polls, so that it leaves the cores to the kernels. It moves
// messages while this rank computes, and answers for it: a rank whose process is stopped or whose
// node is gone stops answering, and whoever waits for it learns that well before the timeout.
//
// The world fails together: an abort, a pair of messages of different sizes, a wait that runs out
// of time, a silent peer, or a rank that ends while a peer still waits for it ends every rank with
// one reason. Where a peer no longer takes part, MPI cannot be finalised; the process then ends
// through MPI_Abort, so that the launcher ends the rest. A process can be a rank of several worlds,
// one after the other.
//
// Example:
//   if (!mpi::launched()) return mpi::launch(4, {program, "train", ...});
//   mpi::run_rank([](Transport& transport) { barrier(transport, {0, 1, 2, 3}); });

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tessera/comm/transport.h"

namespace tessera::mpi {

/// Whether this build has MPI. Without it create(), run_rank() and launch() throw Unsupported.
bool available();

/// Whether this process was started by launch(), as a rank or on the way to one.
bool under_launcher();

/// For a program that launch() starts, early in main(): notes for the launcher that this process is
/// there, and how it exits. Else it is noted when MPI starts.
void report_to_launcher();

/// Whether this process was started as one of several ranks, by mpirun or srun (from the
/// environment; does not touch MPI).
bool launched();

struct Options {
  std::chrono::milliseconds timeout{60'000};   // of a wait in which nothing of its batch moves
  std::chrono::milliseconds heartbeat{1'000};  // between two signs of life that a waiting rank asks
                                               // for; at most a sixth of the timeout is used
  int64_t chunk_bytes = int64_t{256} << 20;    // longer messages are cut: MPI counts in `int`
};

/// Collective over all processes: a world of all of them. The first call initialises MPI, which is
/// finalised when the program exits. The transport's destructor ends the world, after all ranks
/// have reached it; then another may follow, also where this one failed and no rank was lost. The
/// transport goes before the program's exit. Messages in a device's memory are staged in the
/// host's.
/// Throws InvalidInput on options out of range and when MPI sees another number of ranks than the
/// launcher started, CommError when MPI does not start, InternalError while another world lives.
std::unique_ptr<Transport> create(const Options& options = {});

/// create(), then `body(transport)`, then the orderly end, whose failure is thrown too (a
/// destructor would have to hide it). If the body throws, all ranks learn the reason and end; the
/// error is rethrown with its kind kept and "rank r/size: " in its message.
void run_rank(const std::function<void(Transport&)>& body, const Options& options = {});

struct LaunchOptions {
  std::string mpirun = "mpirun";  // looked up in PATH
  /// Put before the command: a host file, a mapping. Where there are some, ranks may be on other
  /// machines; else all are here, and the job gets a network of its own (private_network.h).
  std::vector<std::string> mpirun_options;
  std::chrono::milliseconds patience{8'000};      // with mpirun, once a rank has failed or vanished
  std::chrono::milliseconds start_limit{60'000};  // in which another rank must have started
};

/// Starts `command` as `ranks` processes under mpirun and waits for them; as root and with more
/// ranks than cores too. Their output passes through; at the end, stderr says which rank failed and
/// why.
///
/// SIGINT and SIGTERM go to the ranks, which may end well; the second one ends them. The ranks' own
/// word decides, not mpirun's exit code. Returns the exit code of the ranks that have one other
/// than 0, where all have ended and those agree on 1, 2 or 4; 3 where a rank died or never started,
/// the transport failed or they differ; 128 + signal where they died of the signal that was passed
/// on. No process of the job is left. Throws InvalidInput when mpirun cannot be started, and
/// OutOfMemory where the system lacks processes or descriptors for it.
///
/// One call at a time, since it takes over the handlers of both signals.
int launch(int ranks, const std::vector<std::string>& command, const LaunchOptions& options = {});

}  // namespace tessera::mpi
