#pragma once
// All of MPI that the transport uses, behind a header that includes none of MPI's: four ordered
// channels between every pair of ranks, operations that start without waiting, and one poll() that
// runs what is to happen when they complete. Everything above it is plain C++.
//
// One thread makes, uses and destroys it. Memory stays valid until the completion has run. Throws
// CommError with MPI's text when a call fails; after that the wire is not to be used.
//
// Example:
//   wire.receive(Channel::kClear, peer, nullptr, 0, [&](const Arrival&) { send_data(); });
//   while (waiting) wire.poll();

#include <cstdint>
#include <functional>
#include <memory>

namespace tessera::mpi {

/// Messages of a pair keep their order within a channel, not across channels.
enum class Channel { kEnvelope, kClear, kData, kControl };

constexpr int kAnyRank = -1;

struct Arrival {
  int from = 0;            // of a receive
  int64_t bytes = 0;       // of a receive
  bool cancelled = false;  // a receive that will get nothing
};

using Completion = std::function<void(const Arrival&)>;
using RequestId = int64_t;

class Wire {
 public:
  /// Collective over all processes: makes channels of its own, and starts MPI where this is the
  /// first wire of the process.
  Wire();
  /// Leaves MPI running, for the next wire.
  ~Wire();

  int rank() const { return rank_; }
  int size() const { return size_; }

  RequestId send(Channel channel, int to, const void* data, int64_t bytes, Completion completion);
  RequestId receive(Channel channel, int from, void* data, int64_t bytes, Completion completion);

  /// Lets MPI progress and runs the completions of what is done. Returns their number.
  int poll();

  /// Takes back a receive that has not met its message; poll() then completes it as cancelled. One
  /// that has met it completes as usual.
  void cancel(RequestId id);

  /// Requests that have not completed.
  int64_t num_pending() const;

  /// Takes back all receives, before the end.
  void cancel_receives();

 private:
  struct Requests;
  RequestId add(const void* request, bool is_receive, Completion completion);

  std::unique_ptr<Requests> requests_;
  int rank_ = 0;
  int size_ = 0;
};

// At the end of the process; from any thread, when no communication thread uses MPI any more.

/// Collective over all processes: ends MPI, if it was ever started.
void finalise();

/// Ends all processes of the job through MPI, with this exit code. For a process that cannot
/// finalise.
[[noreturn]] void abort_job(int exit_code);

}  // namespace tessera::mpi
