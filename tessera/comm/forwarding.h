#pragma once
// A transport that hands every call to another one: the base of the decorators, which override what
// they change.

#include <memory>
#include <string>
#include <utility>

#include "tessera/comm/collective.h"
#include "tessera/comm/transport.h"

namespace tessera {

class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner)
      : inner_(inner.get()), owned_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Ticket start(const Batch& batch) override { return inner_->start(batch); }
  void finish(Ticket ticket) override { inner_->finish(ticket); }
  std::unique_ptr<Collective> start_all_reduce(const AllReduceCall& call,
                                               Transport& messages) override {
    return inner_->start_all_reduce(call, messages);
  }
  std::unique_ptr<Collective> start_all_gather(const AllGatherCall& call,
                                               Transport& messages) override {
    return inner_->start_all_gather(call, messages);
  }
  std::unique_ptr<Collective> start_broadcast(const BroadcastCall& call,
                                              Transport& messages) override {
    return inner_->start_broadcast(call, messages);
  }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }
  bool failed() const noexcept override { return inner_->failed(); }

 protected:
  /// `inner` outlives it.
  explicit ForwardingTransport(Transport& inner) : inner_(&inner) {}

  Transport* const inner_;

 private:
  const std::unique_ptr<Transport> owned_;  // null: it is borrowed
};

/// A decorator that carries messages in the memory of devices over a transport that may know the
/// host's only. Collectives there are made of its messages; those of the host's memory are the
/// inner transport's.
class DeviceCarrier : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  std::unique_ptr<Collective> start_all_reduce(const AllReduceCall& call,
                                               Transport& messages) override {
    return call.queue ? Transport::start_all_reduce(call, messages)
                      : inner_->start_all_reduce(call, messages);
  }
  std::unique_ptr<Collective> start_all_gather(const AllGatherCall& call,
                                               Transport& messages) override {
    return call.queue ? Transport::start_all_gather(call, messages)
                      : inner_->start_all_gather(call, messages);
  }
  std::unique_ptr<Collective> start_broadcast(const BroadcastCall& call,
                                              Transport& messages) override {
    return call.queue ? Transport::start_broadcast(call, messages)
                      : inner_->start_broadcast(call, messages);
  }
};

}  // namespace tessera
