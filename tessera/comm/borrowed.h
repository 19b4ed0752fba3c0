#pragma once
// A transport that hands every call to one that somebody else owns and that outlives it: so that a
// decorator, which owns what it wraps, can wrap a borrowed one.

#include <memory>
#include <string>

#include "tessera/comm/collective.h"
#include "tessera/comm/transport.h"

namespace tessera {

class BorrowedTransport final : public Transport {
 public:
  explicit BorrowedTransport(Transport& lender) : lender_(lender) {}

  int rank() const override { return lender_.rank(); }
  int size() const override { return lender_.size(); }
  Ticket start(const Batch& batch) override { return lender_.start(batch); }
  void finish(Ticket ticket) override { lender_.finish(ticket); }
  std::unique_ptr<Collective> start_all_reduce(const AllReduceCall& call,
                                               Transport& messages) override {
    return lender_.start_all_reduce(call, messages);
  }
  std::unique_ptr<Collective> start_all_gather(const AllGatherCall& call,
                                               Transport& messages) override {
    return lender_.start_all_gather(call, messages);
  }
  std::unique_ptr<Collective> start_broadcast(const BroadcastCall& call,
                                              Transport& messages) override {
    return lender_.start_broadcast(call, messages);
  }
  void abort(const std::string& reason) noexcept override { lender_.abort(reason); }

 private:
  Transport& lender_;
};

}  // namespace tessera
