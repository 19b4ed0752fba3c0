#pragma once
// One rank's end of a world of threads.

#include <memory>
#include <unordered_map>

#include "tessera/comm/threads/world.h"
#include "tessera/comm/transport.h"

namespace tessera::threads {

class RankTransport : public Transport {
 public:
  RankTransport(std::shared_ptr<World> world, int rank);
  /// Safe with batches outstanding: they are withdrawn, and peers that wait for them fail.
  ~RankTransport() override;

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  Ticket start(const Batch& batch) override;
  void finish(Ticket ticket) override;
  void abort(const std::string& reason) noexcept override;
  bool failed() const noexcept override { return world_->aborted(); }

 private:
  Mailbox& mailbox_of(const MailedMessage& message);
  void post(StartedBatch& started);
  void move_met(StartedBatch& started);
  void copy_met(StartedBatch& started);
  bool fits(const MailedMessage& own, const MailedMessage& met) noexcept;
  bool wait(StartedBatch& batch);
  std::string timeout_text(const StartedBatch& batch);
  void withdraw_all() noexcept;
  [[noreturn]] void give_up();

  std::shared_ptr<World> world_;
  int rank_;
  Desk& desk_;
  Ticket next_ticket_ = 0;
  std::unordered_map<Ticket, std::unique_ptr<StartedBatch>> started_;
};

}  // namespace tessera::threads
