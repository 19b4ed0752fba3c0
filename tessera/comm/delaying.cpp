#include <algorithm>
#include <thread>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/forwarding.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

class DelayingTransport : public ForwardingTransport {
 public:
  DelayingTransport(std::unique_ptr<Transport> inner, Delay delay)
      : ForwardingTransport(std::move(inner)), delay_(delay) {}

  Ticket start(const Batch& batch) override {
    const Clock::time_point begin = Clock::now();
    const Ticket ticket = inner_->start(batch);
    ready_[ticket] = begin + cost(batch);
    return ticket;
  }

  // First the real wait, which notices a failed peer, then what is left of the pretended one.
  void finish(Ticket ticket) override {
    inner_->finish(ticket);
    const auto found = ready_.find(ticket);
    const Clock::time_point ready = found->second;
    ready_.erase(found);
    std::this_thread::sleep_until(ready);
  }

 private:
  Clock::duration cost(const Batch& batch) const {
    int64_t num_crossing = 0, sent_bytes = 0, received_bytes = 0;
    for (const Send& send : batch.sends) {
      if (send.to == rank()) continue;
      ++num_crossing;
      sent_bytes += send.bytes;
    }
    for (const Receive& receive : batch.receives) {
      if (receive.from == rank()) continue;
      ++num_crossing;
      received_bytes += receive.bytes;
    }
    if (num_crossing == 0) return Clock::duration::zero();
    std::chrono::duration<double> transfer{0};
    if (delay_.bytes_per_second > 0)
      transfer = std::chrono::duration<double>(
          static_cast<double>(std::max(sent_bytes, received_bytes)) / delay_.bytes_per_second);
    return delay_.latency + std::chrono::ceil<Clock::duration>(transfer);
  }

  Delay delay_;
  std::unordered_map<Ticket, Clock::time_point> ready_;
};

}  // namespace

std::unique_ptr<Transport> delaying(std::unique_ptr<Transport> inner, Delay delay) {
  if (delay.latency.count() < 0 || !(delay.bytes_per_second >= 0))
    throw_error<InvalidInput>("[delaying] latency {} us and {} bytes/s must not be negative",
                              delay.latency.count(), delay.bytes_per_second);
  return std::make_unique<DelayingTransport>(std::move(inner), delay);
}

}  // namespace tessera
