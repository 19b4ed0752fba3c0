#pragma once
// A transport that hands every call to one that somebody else owns and that outlives it: so that a
// decorator, which owns what it wraps, can wrap a borrowed one.

#include <string>

#include "tessera/comm/transport.h"

namespace tessera {

class BorrowedTransport final : public Transport {
 public:
  explicit BorrowedTransport(Transport& lender) : lender_(lender) {}

  int rank() const override { return lender_.rank(); }
  int size() const override { return lender_.size(); }
  Ticket start(const Batch& batch) override { return lender_.start(batch); }
  void finish(Ticket ticket) override { lender_.finish(ticket); }
  void abort(const std::string& reason) noexcept override { lender_.abort(reason); }

 private:
  Transport& lender_;
};

}  // namespace tessera
