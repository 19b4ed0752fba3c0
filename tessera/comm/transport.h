#pragma once
// The whole of what the runtime asks of a network: batches of point-to-point messages, and
// collectives, that start without waiting and are finished later, with a limit on every wait. A
// transport that brings no collectives of its own makes them of messages. Callers start them
// through collectives.h.
//
// Messages of an ordered pair of ranks match by order, not by tag: the n-th send from a to b meets
// the n-th receive of b from a. The lowering's checker proves that programs keep that order.
//
// Contract: one thread drives one Transport object. Memory named in a batch stays valid and
// untouched (receives: unread) until finish() returns. Sends may rendezvous: a batch whose peers
// never post their part does not finish. An empty message moves nothing but matches like any other,
// so it still synchronises. When start() or finish() throws CommError, and after abort(), the
// transport touches no memory of any batch of this rank; an exception of another kind that frees
// such memory must pass abort() first (outstanding.h does it).
//
// Where a batch names a queue, its memory is that of a device, at both ends of every message, and
// the same holds in the order of the queues (device_queue.h) while the hosts run ahead: what is
// sent is what the memory holds once all that had been queued when start() was called has run, and
// receives are written after that, too; what is queued after finish() has returned sees what has
// arrived, and may overwrite what was sent. The host waits for the host threads of its peers, never
// for the device, unless the transport has no other way (staging, in decorators.h). Empty messages
// keep hosts together, not queues. The queue lives until the batch is finished or abort() returns.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera {

class Collective;
class DeviceQueue;
struct AllGatherCall;
struct AllReduceCall;
struct BroadcastCall;

struct Send {
  int to = 0;
  const void* data = nullptr;
  int64_t bytes = 0;
};

struct Receive {
  int from = 0;
  void* data = nullptr;
  int64_t bytes = 0;
};

/// Posted together; within a pair, in list order. A message to oneself is legal.
struct Batch {
  std::vector<Send> sends;
  std::vector<Receive> receives;
  DeviceQueue* queue = nullptr;  // of the device whose memory it is; null: the host's memory
};

/// Longer waits are cut to this: a deadline beyond the clock's range would lie in the past.
inline constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 365);

/// From 1 ms to kLongestTimeout.
inline std::chrono::milliseconds timeout_of(double seconds) {
  const double longest = std::chrono::duration<double, std::milli>(kLongestTimeout).count();
  return std::chrono::milliseconds(
      static_cast<int64_t>(std::clamp(std::ceil(seconds * 1000), 1.0, longest)));
}

/// Names a started batch; finish() consumes it.
using Ticket = int64_t;

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Point-to-point. Posts the batch and returns without waiting for a peer. Throws CommError when
  /// the world has been aborted.
  virtual Ticket start(const Batch& batch) = 0;

  /// Waits until all messages of the batch have moved. Throws CommError, naming ranks and bytes,
  /// when a peer failed, the sizes of a pair of messages differ, or the transport's timeout has
  /// passed.
  virtual void finish(Ticket ticket) = 0;

  /// Collectives over `call.members`. The defaults are rounds of messages of `messages`, which is
  /// this transport or the outermost of the decorators around it: they see those messages, while
  /// collectives of a transport's own pass through them. Failures are as those of start() and
  /// finish().
  virtual std::unique_ptr<Collective> start_all_reduce(const AllReduceCall& call,
                                                       Transport& messages);
  virtual std::unique_ptr<Collective> start_all_gather(const AllGatherCall& call,
                                                       Transport& messages);
  virtual std::unique_ptr<Collective> start_broadcast(const BroadcastCall& call,
                                                      Transport& messages);

  /// Tells all ranks that this one cannot go on; their present and future waits throw CommError
  /// with this rank and `reason`. Does not wait for a peer, never throws. The first reason wins.
  virtual void abort(const std::string& reason) noexcept = 0;

  /// Whether some rank cannot go on, as far as is known here. For any thread, at any time.
  virtual bool failed() const noexcept = 0;
};

}  // namespace tessera
