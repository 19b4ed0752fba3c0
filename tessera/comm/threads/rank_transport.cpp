#include "tessera/comm/threads/rank_transport.h"

#include <utility>

#include "tessera/comm/threads/copies.h"

namespace tessera::threads {
namespace {

std::unique_ptr<StartedBatch> prepare(const std::vector<PostedMessage>& messages,
                                      DeviceQueue* queue, Desk& desk) {
  auto started = std::make_unique<StartedBatch>();
  started->desk = &desk;
  started->queue = queue;
  if (queue) started->ready = queue->now();
  for (const PostedMessage& message : messages)
    started->messages.push_back({message, started.get()});
  started->num_unsettled = std::ssize(started->messages);
  return started;
}

/// Of what has met its partner and is not settled.
void settle_met(StartedBatch& started) {
  for (MailedMessage& message : started.messages)
    if (MailedMessage* met = std::exchange(message.partner, nullptr)) {
      settle(*met);
      settle(message);
    }
}

}  // namespace

RankTransport::RankTransport(std::shared_ptr<World> world, int rank)
    : world_(std::move(world)), rank_(rank), desk_(world_->desk(rank)) {}

RankTransport::~RankTransport() {
  withdraw_all();
  world_->leave(rank_);
}

Mailbox& RankTransport::mailbox_of(const MailedMessage& message) {
  return message.as == PostedAs::kSend ? world_->mailbox(rank_, message.peer)
                                       : world_->mailbox(message.peer, rank_);
}

Ticket RankTransport::start(const Batch& batch) {
  const std::vector<PostedMessage> messages = posted_messages(batch, *this);
  if (world_->aborted()) give_up();
  const Ticket ticket = next_ticket_++;
  auto prepared = prepare(messages, batch.queue, desk_);
  StartedBatch& started = *(started_[ticket] = std::move(prepared));
  post(started);
  move_met(started);
  return ticket;
}

// All are posted before the first is copied: a long copy must not hold back the other peers.
void RankTransport::post(StartedBatch& started) {
  for (MailedMessage& message : started.messages) {
    message.partner = mailbox_of(message).post(message);
    if (!message.partner) world_->check_peer_present(rank_, message);
  }
}

// What has met its partner is out of reach for both ranks until it is settled, so what is thrown in
// between, by a device or because the two ends do not fit, has to wait for that.
void RankTransport::move_met(StartedBatch& started) {
  try {
    check_places(started);
    copy_met(started);
    settle_met(started);
  } catch (const std::exception& error) {
    world_->abort(rank_, error.what());  // before settling: neither side takes it for complete
    drain(started.queue);
    settle_met(started);
    withdraw_all();
    throw;
  }
}

bool RankTransport::fits(const MailedMessage& own, const MailedMessage& met) noexcept {
  if (own.bytes == met.bytes) return true;
  const MailedMessage& send = own.as == PostedAs::kSend ? own : met;
  const MailedMessage& receive = own.as == PostedAs::kSend ? met : own;
  // Before settling, so that neither side can take the batch for complete.
  world_->abort(rank_, size_mismatch(receive.peer, send.peer, send.bytes, receive.bytes));
  return false;
}

void RankTransport::copy_met(StartedBatch& started) {
  QueuedCopies queued(started.queue);
  for (MailedMessage& own : started.messages) {
    if (!own.partner) continue;
    MailedMessage& met = *own.partner;
    const bool copies = fits(own, met) && own.bytes > 0;
    if (started.queue) {
      if (copies) queued.add(own, met);
      continue;
    }
    if (copies) copy_on_host(own, met);
    own.partner = nullptr;
    settle(met);
    settle(own);
  }
  queued.end();
}

void RankTransport::finish(Ticket ticket) {
  if (world_->aborted()) give_up();
  const auto found = started_.find(ticket);
  TESSERA_CHECK(found != started_.end(), "rank {}/{} finishes ticket {}, which is not outstanding",
                rank_, size(), ticket);
  if (!wait(*found->second)) world_->abort(rank_, timeout_text(*found->second));
  if (world_->aborted()) give_up();
  try {
    await_copies(*found->second);
  } catch (const std::exception& error) {
    abort(error.what());
    throw;
  }
  started_.erase(found);
}

/// False when time ran out. Then the desk still says what this rank waits for, because another rank
/// may run out of time just now and must not take this one for the culprit.
bool RankTransport::wait(StartedBatch& batch) {
  const auto deadline = std::chrono::steady_clock::now() + world_->timeout();
  std::unique_lock lock(desk_.mutex);
  desk_.waiting_for = &batch;
  const bool ended = desk_.changed.wait_until(
      lock, deadline, [&] { return batch.num_unsettled == 0 || world_->aborted(); });
  if (ended) desk_.waiting_for = nullptr;
  return ended;
}

std::string RankTransport::timeout_text(const StartedBatch& batch) {
  std::vector<PostedMessage> unsettled;
  {
    std::lock_guard lock(desk_.mutex);
    for (const MailedMessage& message : batch.messages)
      if (!message.settled) unsettled.push_back(message);
  }
  return fmt::format("waited {} ms in vain {}; {}. Look there first, or raise the timeout",
                     world_->timeout().count(), list_messages(unsettled),
                     explain_stall(world_->wait_graph(), rank_));
}

// Memory of outstanding batches may be freed after this, so it waits for the copies that are under
// way or queued. They wait for nobody, hence no timeout.
void RankTransport::withdraw_all() noexcept {
  for (auto& [ticket, batch] : started_)
    for (MailedMessage& message : batch->messages)
      if (mailbox_of(message).withdraw(message)) settle(message);
  std::unique_lock lock(desk_.mutex);
  for (auto& [ticket, batch] : started_)
    desk_.changed.wait(lock, [&, started = batch.get()] { return started->num_unsettled == 0; });
  desk_.waiting_for = nullptr;
  lock.unlock();
  for (auto& [ticket, batch] : started_) let_go(*batch);
  started_.clear();
}

void RankTransport::give_up() {
  withdraw_all();
  world_->throw_aborted(rank_);
}

void RankTransport::abort(const std::string& reason) noexcept {
  world_->abort(rank_, reason);
  withdraw_all();
}

}  // namespace tessera::threads
