#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>

#include "tessera/base/error.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/forwarding.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

/// When a batch was started here, and at its peers: their clocks come with their messages.
struct Stamps {
  int64_t own = 0;
  std::vector<int64_t> peers;

  explicit Stamps(size_t receives) : own(now()), peers(receives, own) {}
  static int64_t now() { return Clock::now().time_since_epoch().count(); }
};

class DelayingTransport : public ForwardingTransport {
 public:
  DelayingTransport(std::unique_ptr<Transport> inner, Delay delay, DelayCounters* counters)
      : ForwardingTransport(std::move(inner)), delay_(delay), counters_(counters) {}

  Ticket start(const Batch& batch) override {
    Delayed delayed{std::make_unique<Stamps>(batch.receives.size()), cost(batch)};
    // Times are in the host's memory: messages of a device take theirs in a batch of its own.
    Batch stamped = batch.queue ? Batch{} : batch;
    for (const Send& send : batch.sends)
      stamped.sends.push_back({send.to, &delayed.stamps->own, sizeof(int64_t)});
    for (size_t i = 0; i < batch.receives.size(); ++i)
      stamped.receives.push_back(
          {batch.receives[i].from, &delayed.stamps->peers[i], sizeof(int64_t)});
    const Ticket ticket = inner_->start(batch.queue ? batch : stamped);
    if (batch.queue) delayed.times = inner_->start(stamped);
    delayed_[ticket] = std::move(delayed);
    return ticket;
  }

  // First the real wait, which notices a failed peer, then what is left of the pretended one.
  void finish(Ticket ticket) override {
    const auto found = delayed_.find(ticket);
    const Delayed delayed = std::move(found->second);
    delayed_.erase(found);
    if (delayed.times) inner_->finish(*delayed.times);
    inner_->finish(ticket);
    const Clock::time_point now = Clock::now();
    const Clock::time_point ready = posted_by_all(*delayed.stamps, now) + delayed.cost;
    if (counters_ != nullptr) {
      counters_->transfer_seconds += seconds(delayed.cost);
      counters_->exposed_seconds += seconds(std::max(ready - now, Clock::duration::zero()));
    }
    std::this_thread::sleep_until(ready);
  }

 private:
  struct Delayed {
    std::unique_ptr<Stamps> stamps;  // where messages find them
    Clock::duration cost{};
    std::optional<Ticket> times = {};  // their batch, where they have one
  };

  static double seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  /// Never later than `now`, at which all messages have moved, whatever the clocks of others say.
  static Clock::time_point posted_by_all(const Stamps& stamps, Clock::time_point now) {
    int64_t latest = stamps.own;
    for (int64_t peer : stamps.peers) latest = std::max(latest, peer);
    return std::min(now, Clock::time_point(Clock::duration(latest)));
  }

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
  DelayCounters* counters_;
  std::unordered_map<Ticket, Delayed> delayed_;
};

}  // namespace

std::unique_ptr<Transport> delaying(std::unique_ptr<Transport> inner, Delay delay,
                                    DelayCounters* counters) {
  if (delay.latency.count() < 0 || !(delay.bytes_per_second >= 0))
    throw_error<InvalidInput>("[delaying] latency {} us and {} bytes/s must not be negative",
                              delay.latency.count(), delay.bytes_per_second);
  return std::make_unique<DelayingTransport>(std::move(inner), delay, counters);
}

}  // namespace tessera
