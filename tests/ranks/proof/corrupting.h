#pragma once
// A transport that changes one message a little, on its way out: a fault that no program could have
// planted in itself.

#include <algorithm>
#include <map>
#include <vector>

#include "tessera/comm/borrowed.h"

namespace tessera {

/// The `nth` message (from 0) of exactly this many bytes has its float64 numbers multiplied by
/// 1 + error.
struct PlantedFault {
  int64_t bytes = 0;
  int nth = 0;
  double error = 1e-8;
};

class CorruptingTransport final : public ForwardingTransport {
 public:
  CorruptingTransport(Transport& lender, const PlantedFault& fault)
      : ForwardingTransport(std::make_unique<BorrowedTransport>(lender)), fault_(fault) {}

  /// How many messages had the fault's size so far.
  int seen() const { return seen_; }

  Ticket start(const Batch& batch) override {
    Batch sent = batch;
    std::vector<double> changed;
    for (Send& send : sent.sends) {
      if (send.bytes != fault_.bytes || seen_++ != fault_.nth) continue;
      const auto* numbers = static_cast<const double*>(send.data);
      changed.assign(numbers, numbers + send.bytes / sizeof(double));
      for (double& number : changed) number *= 1 + fault_.error;
      send.data = changed.data();
    }
    const Ticket ticket = inner_->start(sent);
    if (!changed.empty()) changed_[ticket] = std::move(changed);
    return ticket;
  }

  void finish(Ticket ticket) override {
    inner_->finish(ticket);
    changed_.erase(ticket);
  }

 private:
  const PlantedFault fault_;
  int seen_ = 0;
  std::map<Ticket, std::vector<double>> changed_;  // what is on its way
};

}  // namespace tessera
