#pragma once
// Ranks with a GPU each: batches and sums in the memory of GPUs go by NCCL, without a copy on the
// host; everything else is the business of the transport of the host's memory beneath, which also
// brings the ranks together.
//
//   from a lower to a higher rank  ──►  a communicator and a stream of its own
//   from a higher to a lower one   ──►  another one: activations do not wait for gradients
//   sums over all ranks            ──►  a third one
//
// Messages of one communicator move in the order of the batches on each rank, one batch after the
// other; so where ranks start their batches in contradicting orders, more than those of a pair,
// they stall here, where other transports do not. Sums over some of the ranks, gathers and
// broadcasts are made of messages (message_collective.h). A message of a rank to itself is received
// in the batch in which it is sent.
//
// The world fails together: a watchdog looks at the communicators, at the transport beneath and at
// how long what has been queued takes. On failure it ends the communicators, so that the device
// does not wait for ever; what has run behind them on the device is worthless, and the next call of
// the transport throws CommError. So whoever has drained a queue asks the transport once more
// before using what has come out of it; any call will do.
//
// Example:
//   auto transport = nccl::create(mpi::create(), device_index);

#include <chrono>
#include <memory>

#include "tessera/comm/transport.h"

namespace tessera::nccl {

/// Whether this build has NCCL. Without it create() throws Unsupported.
bool available();

/// Collective over all ranks of `host`, whose GPUs have to be different ones: `device` is this
/// rank's, by CUDA's number, and the calling thread's present one. `timeout` is how long a batch or
/// sum may take once its turn has come. Connects every rank with every other. The transport's
/// destructor waits for that of the other ranks, so each rank's thread ends its own. Throws
/// InvalidInput, on all ranks, where two have the same GPU.
std::unique_ptr<Transport> create(
    std::unique_ptr<Transport> host, int device,
    std::chrono::milliseconds timeout = std::chrono::milliseconds(60'000));

}  // namespace tessera::nccl
