#include "tessera/comm/threads/rank_transport.h"

#include <cstring>
#include <utility>

namespace tessera::threads {
namespace {

std::unique_ptr<StartedBatch> prepare(const Batch& batch, Desk& desk) {
  auto started = std::make_unique<StartedBatch>();
  started->desk = &desk;
  started->messages.reserve(batch.sends.size() + batch.receives.size());
  const auto add = [&](Direction direction, int peer, const void* source, void* target,
                       int64_t bytes) {
    Message& message = started->messages.emplace_back();
    message.direction = direction;
    message.peer = peer;
    message.source = source;
    message.target = target;
    message.bytes = bytes;
    message.batch = started.get();
  };
  for (const Send& send : batch.sends)
    add(Direction::kSend, send.to, send.data, nullptr, send.bytes);
  for (const Receive& receive : batch.receives)
    add(Direction::kReceive, receive.from, nullptr, receive.data, receive.bytes);
  started->num_unsettled = static_cast<int64_t>(started->messages.size());
  return started;
}

}  // namespace

RankTransport::RankTransport(std::shared_ptr<World> world, int rank)
    : world_(std::move(world)), rank_(rank), desk_(world_->desk(rank)) {}

RankTransport::~RankTransport() {
  withdraw_all();
  world_->leave(rank_);
}

void RankTransport::check(const Batch& batch) const {
  for (const Send& send : batch.sends)
    TESSERA_CHECK(send.to >= 0 && send.to < size() && send.bytes >= 0,
                  "rank {}/{} sends {} bytes to rank {}", rank_, size(), send.bytes, send.to);
  for (const Receive& receive : batch.receives)
    TESSERA_CHECK(receive.from >= 0 && receive.from < size() && receive.bytes >= 0,
                  "rank {}/{} receives {} bytes from rank {}", rank_, size(), receive.bytes,
                  receive.from);
}

Mailbox& RankTransport::mailbox_of(const Message& message) {
  return message.direction == Direction::kSend ? world_->mailbox(rank_, message.peer)
                                               : world_->mailbox(message.peer, rank_);
}

// All are posted before the first is copied: a long copy must not hold back the other peers. What
// has met its partner is out of reach for both ranks until move() settles it, so nothing in between
// may throw.
Ticket RankTransport::start(const Batch& batch) {
  check(batch);
  if (world_->aborted()) give_up();
  const Ticket ticket = next_ticket_++;
  StartedBatch& started = *(started_[ticket] = prepare(batch, desk_));
  for (Message& message : started.messages) {
    message.partner = mailbox_of(message).post(message);
    if (!message.partner) world_->check_peer_present(rank_, message);
  }
  for (Message& message : started.messages)
    if (message.partner) move(message, *message.partner);
  return ticket;
}

void RankTransport::move(Message& own, Message& met) noexcept {
  const Message& send = own.direction == Direction::kSend ? own : met;
  const Message& receive = own.direction == Direction::kSend ? met : own;
  if (send.bytes != receive.bytes)
    // Before settling, so that neither side can take the batch for complete.
    world_->abort(rank_, fmt::format("the message from rank {} to rank {} has {} bytes at the "
                                     "sender and {} bytes at the receiver; both must post the same "
                                     "messages in the same order",
                                     receive.peer, send.peer, send.bytes, receive.bytes));
  else if (send.bytes > 0)
    std::memcpy(receive.target, send.source, static_cast<size_t>(send.bytes));
  settle(met);
  settle(own);
}

void RankTransport::finish(Ticket ticket) {
  if (world_->aborted()) give_up();
  const auto found = started_.find(ticket);
  TESSERA_CHECK(found != started_.end(), "rank {}/{} finishes ticket {}, which is not outstanding",
                rank_, size(), ticket);
  if (!wait(*found->second)) world_->abort(rank_, timeout_text(*found->second));
  if (world_->aborted()) give_up();
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
  constexpr int kMostListed = 8;
  std::string list;
  int num_waiting = 0;
  {
    std::lock_guard lock(desk_.mutex);
    for (const Message& message : batch.messages) {
      if (message.settled || ++num_waiting > kMostListed) continue;
      const bool send = message.direction == Direction::kSend;
      list +=
          fmt::format("{}to {} {} bytes {} rank {}", num_waiting > 1 ? ", " : "",
                      send ? "send" : "receive", message.bytes, send ? "to" : "from", message.peer);
    }
  }
  if (num_waiting > kMostListed) list += fmt::format(" and {} more", num_waiting - kMostListed);
  return fmt::format("waited {} ms in vain {}; {}. Look there first, or raise the timeout",
                     world_->timeout().count(), list, explain_stall(world_->wait_graph(), rank_));
}

// Memory of outstanding batches may be freed after this, so it waits for the copies that are under
// way. They wait for nobody, hence no timeout.
void RankTransport::withdraw_all() noexcept {
  for (auto& [ticket, batch] : started_)
    for (Message& message : batch->messages)
      if (mailbox_of(message).withdraw(message)) settle(message);
  std::unique_lock lock(desk_.mutex);
  for (auto& [ticket, batch] : started_)
    desk_.changed.wait(lock, [&, started = batch.get()] { return started->num_unsettled == 0; });
  desk_.waiting_for = nullptr;
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
