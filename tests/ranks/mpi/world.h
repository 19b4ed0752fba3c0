#pragma once
// The transport that all tests of this program share: MPI starts once in a process, and starting
// ranks takes seconds, so every test runs over the same world, on all its ranks, in the same order.

#include "tessera/comm/collectives.h"
#include "tessera/comm/transport.h"

namespace tessera {

Transport& world();

/// All ranks of the world.
Group everyone();

/// A decorator's way to the world, which it does not own.
class Borrowed : public Transport {
 public:
  explicit Borrowed(Transport& transport) : transport_(transport) {}
  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  Ticket start(const Batch& batch) override { return transport_.start(batch); }
  void finish(Ticket ticket) override { transport_.finish(ticket); }
  void abort(const std::string& reason) noexcept override { transport_.abort(reason); }

 private:
  Transport& transport_;
};

}  // namespace tessera
