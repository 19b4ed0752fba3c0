#include <memory>
#include <unordered_map>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/forwarding.h"
#include "tessera/comm/staging_blocks.h"

namespace tessera {
namespace {

/// So that a message begins where any number may lie.
int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class StagingTransport final : public DeviceCarrier {
 public:
  using DeviceCarrier::DeviceCarrier;

  /// What is staged dies before the transport that carries it.
  ~StagingTransport() override {
    if (!staged_.empty())
      inner_->abort(fmt::format("it ended while {} batches of it were unfinished", staged_.size()));
  }

  Ticket start(const Batch& batch) override {
    if (!batch.queue) return inner_->start(batch);
    Staged staged = stage(batch);
    try {
      fetch_sends(batch, &staged);
      const Ticket ticket = inner_->start(staged.on_host);
      staged_.emplace(ticket, std::move(staged));
      return ticket;
    } catch (...) {
      blocks_.take_back(std::move(staged.block));
      throw;
    }
  }

  void finish(Ticket ticket) override {
    const auto found = staged_.find(ticket);
    if (found == staged_.end()) return inner_->finish(ticket);
    const auto staged = staged_.extract(found);  // also when finish() throws: it lets go
    finish_staged(ticket, &staged.mapped());
  }

 private:
  struct Staged {
    StagingBlock block;
    Batch on_host;
    std::vector<Receive> receives;  // where they belong on the device
  };

  /// All messages of the batch, in a block of the host: the sends, then the receives.
  Staged stage(const Batch& batch) {
    int64_t bytes = 0;
    for (const Send& send : batch.sends) bytes += padded(send.bytes);
    for (const Receive& receive : batch.receives) bytes += padded(receive.bytes);
    Staged staged{blocks_.lend(batch.queue, bytes), {}, batch.receives};
    char* next = static_cast<char*>(staged.block.memory.get());
    for (const Send& send : batch.sends) {
      staged.on_host.sends.push_back({send.to, next, send.bytes});
      next += padded(send.bytes);
    }
    for (const Receive& receive : batch.receives) {
      staged.on_host.receives.push_back({receive.from, next, receive.bytes});
      next += padded(receive.bytes);
    }
    return staged;
  }

  /// The host waits: for what is sent, or for a copy of an earlier loan out of this block.
  void fetch_sends(const Batch& batch, Staged* staged) {
    StagingBlock& block = staged->block;
    char* next = static_cast<char*>(block.memory.get());
    for (const Send& send : batch.sends) {
      if (send.bytes > 0) {
        batch.queue->copy(next, send.data, send.bytes);
        block.queued = true;
      }
      next += padded(send.bytes);
    }
    if (!block.queued) return;
    batch.queue->drain();
    block.queued = false;
  }

  void finish_staged(Ticket ticket, Staged* staged) {
    try {
      inner_->finish(ticket);
      for (size_t i = 0; i < staged->receives.size(); ++i) {
        const Receive& receive = staged->receives[i];
        if (receive.bytes == 0) continue;
        staged->block.queued = true;
        staged->block.queue->copy(receive.data, staged->on_host.receives[i].data, receive.bytes);
      }
    } catch (...) {
      blocks_.take_back(std::move(staged->block));
      throw;
    }
    blocks_.take_back(std::move(staged->block));
  }

  StagingBlocks blocks_;
  std::unordered_map<Ticket, Staged> staged_;
};

}  // namespace

std::unique_ptr<Transport> staging(std::unique_ptr<Transport> inner) {
  return std::make_unique<StagingTransport>(std::move(inner));
}

}  // namespace tessera
