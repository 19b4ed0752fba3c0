#pragma once
// A queue of a device, as a transport sees it: work that runs in its order while the host goes on.
// Messages may lie in a device's memory; then a batch names the queue (transport.h), and nobody
// waits for the device: what a message needs to have happened is a moment in a queue, and what
// follows it waits there.
//
// One thread uses a queue, but for moments: any thread may hold one, and hand it to its own queue.
// Whoever ends a queue drains it first: memory that its work names may go once it is gone.
//
// Example, a copy between the queues of two ranks, made by the one that comes second:
//   own.wait_for(*peer_is_ready);
//   own.copy(target, source, bytes);
//   copied = own.now();                // for which the peer's queue waits in its finish()

#include <cstdint>
#include <memory>

#include "tessera/comm/collective.h"

namespace tessera {

class DeviceQueue {
 public:
  /// When something that was queued is done.
  class Moment {
   public:
    virtual ~Moment() = default;
  };

  virtual ~DeviceQueue() = default;

  /// When all that has been queued here so far is done.
  virtual std::shared_ptr<const Moment> now() = 0;
  /// What is queued from here on runs after that moment, which may be one of another queue.
  virtual void wait_for(const Moment& moment) = 0;
  /// Between memory of the device, or of host_memory().
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  /// Adds `count` terms to as many sums, both in memory of the device.
  virtual void add(void* sums, const void* terms, int64_t count, SumType type) = 0;
  /// Memory of the host that the device copies from and to by itself. It lives as long as somebody
  /// holds it, and must be held until the copies are done.
  virtual std::shared_ptr<void> host_memory(int64_t bytes) = 0;
  /// The host waits until all that has been queued here is done. Throws what the device reports.
  virtual void drain() = 0;
  /// What the device's own libraries call this queue: CUDA's stream.
  virtual void* native() = 0;
};

}  // namespace tessera
