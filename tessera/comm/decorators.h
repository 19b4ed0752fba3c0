#pragma once
// Transports that wrap another one: to count, to slow down, to break, to carry a device's memory.
// They see its messages, also those that a collective is made of; a collective of the transport's
// own passes through them.

#include <chrono>
#include <cstdint>
#include <memory>

#include "tessera/comm/transport.h"

namespace tessera {

struct TransportCounters {
  int64_t messages = 0;  // sent to other ranks
  int64_t bytes_sent = 0;
  double blocked_seconds = 0;  // inside finish()
};

/// Counts what this rank sends (messages to itself and empty ones do not count) and how long it
/// waits. `counters` outlives the transport.
std::unique_ptr<Transport> recording(std::unique_ptr<Transport> inner, TransportCounters* counters);

struct Delay {
  std::chrono::microseconds latency{0};  // per batch
  double bytes_per_second = 0;           // 0: no limit
};

struct DelayCounters {
  double transfer_seconds = 0;  // of all finished batches: what the delay makes them take
  double exposed_seconds = 0;   // of that, what was left when this rank waited for a batch
};

/// A batch moves in latency + (its largest direction's bytes) / bandwidth, counted from the moment
/// at which this rank and those that it receives from have posted: what overlap can hide, it hides.
/// The wait for peers that post late is none of it. Messages to oneself cost nothing. Ranks tell
/// each other when they posted, by a clock that those of one machine share, in messages of 8 bytes
/// beside the others; so all ranks of a world are delayed, or none. Messages between devices are
/// held back on the host, too, which waits for what is left. `counters` outlives the transport;
/// null: nobody wants to know.
std::unique_ptr<Transport> delaying(std::unique_ptr<Transport> inner, Delay delay,
                                    DelayCounters* counters = nullptr);

/// Batches of devices' memory over a transport of the host's: the host waits until what is sent has
/// come to memory of its own, and what arrives there is copied to the device. A batch of the host's
/// memory passes through. Messages are on the wire when start() returns, in the order of the calls.
std::unique_ptr<Transport> staging(std::unique_ptr<Transport> inner);

enum class Failure { kThrow, kStall };

/// Lets `good_batches` batches start, then fails: throws CommError from start() (and aborts), or
/// stalls: posts nothing, and finish() waits for the transport's own end, by a peer's abort or the
/// timeout, whichever comes first. For tests of what the others do. A stall waits for a message
/// from oneself, so no unmatched message to oneself may be outstanding by then.
std::unique_ptr<Transport> failing(std::unique_ptr<Transport> inner, int64_t good_batches,
                                   Failure failure);

}  // namespace tessera
