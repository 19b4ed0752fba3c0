#include "tessera/comm/decorators.h"
#include "tessera/comm/forwarding.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds the time of its own life, so that a wait that ends in an exception counts too.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) : seconds_(seconds) {}
  ~Stopwatch() { *seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  double* seconds_;
  Clock::time_point begin_ = Clock::now();
};

class RecordingTransport : public ForwardingTransport {
 public:
  RecordingTransport(std::unique_ptr<Transport> inner, TransportCounters* counters)
      : ForwardingTransport(std::move(inner)), counters_(counters) {}

  Ticket start(const Batch& batch) override {
    const Ticket ticket = inner_->start(batch);
    for (const Send& send : batch.sends) {
      if (send.to == rank() || send.bytes == 0) continue;
      counters_->messages += 1;
      counters_->bytes_sent += send.bytes;
    }
    return ticket;
  }

  void finish(Ticket ticket) override {
    Stopwatch watch(&counters_->blocked_seconds);
    inner_->finish(ticket);
  }

 private:
  TransportCounters* counters_;
};

}  // namespace

std::unique_ptr<Transport> recording(std::unique_ptr<Transport> inner,
                                     TransportCounters* counters) {
  return std::make_unique<RecordingTransport>(std::move(inner), counters);
}

}  // namespace tessera
