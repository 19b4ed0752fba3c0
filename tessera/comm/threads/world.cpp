#include "tessera/comm/threads/world.h"

#include <algorithm>

namespace tessera::threads {
namespace {

size_t checked_size(int size) {
  if (size < 1) throw_error<InvalidInput>("[threads] {} ranks; use at least 1", size);
  return static_cast<size_t>(size);
}

}  // namespace

World::World(int size, const Options& options)
    : size_(size),
      timeout_(std::min(options.timeout, kLongestTimeout)),
      mailboxes_(checked_size(size) * checked_size(size)),
      desks_(size),
      left_(size) {
  if (options.timeout.count() < 1)
    throw_error<InvalidInput>("[threads] timeout of {} ms; use at least 1 ms",
                              options.timeout.count());
}

void World::abort(int rank, const std::string& reason) noexcept {
  {
    std::lock_guard lock(abort_mutex_);
    if (aborted_) return;
    aborting_rank_ = rank;
    abort_reason_ = reason;
    aborted_.store(true, std::memory_order_release);
  }
  for (Desk& desk : desks_) {
    // A waiter is either before its test of aborted() or asleep once we have had the lock.
    { std::lock_guard lock(desk.mutex); }
    desk.changed.notify_all();
  }
}

void World::throw_aborted(int rank) const {
  if (rank == aborting_rank_)
    throw_error<CommError>("[comm] rank {}/{}: {}", rank, size_, abort_reason_);
  throw_error<PeerFailed>("[comm] rank {}/{}: rank {} failed: {}", rank, size_, aborting_rank_,
                          abort_reason_);
}

// leave() raises its flag and then looks into the mailboxes; a peer queues and then looks at the
// flag. Whatever the timing, one of the two sees the other.
void World::leave(int rank) noexcept {
  left_[rank] = true;
  for (int peer = 0; peer < size_ && !aborted(); ++peer) {
    if (const auto bytes = mailbox(rank, peer).waiting_bytes())
      abort_left(rank, peer, PostedAs::kReceive, *bytes);
    if (const auto bytes = mailbox(peer, rank).waiting_bytes())
      abort_left(rank, peer, PostedAs::kSend, *bytes);
  }
}

// The peer may have met the message and left since it was queued: only one that still waits does so
// in vain.
void World::check_peer_present(int rank, const MailedMessage& message) noexcept {
  if (!left_[message.peer]) return;
  const bool receive = message.as == PostedAs::kReceive;
  Mailbox& shared = receive ? mailbox(message.peer, rank) : mailbox(rank, message.peer);
  if (const auto bytes = shared.waiting_bytes()) abort_left(message.peer, rank, message.as, *bytes);
}

void World::abort_left(int left, int waiting, PostedAs waiting_for, int64_t bytes) noexcept {
  const bool receive = waiting_for == PostedAs::kReceive;
  abort(left, fmt::format("it ended while rank {} {} {} bytes {} it; all ranks must post the same "
                          "messages",
                          waiting, receive ? "expects" : "has", bytes, receive ? "from" : "for"));
}

WaitGraph World::wait_graph() {
  WaitGraph graph(size_);
  for (int rank = 0; rank < size_; ++rank) {
    std::lock_guard lock(desks_[rank].mutex);
    const StartedBatch* batch = desks_[rank].waiting_for;
    if (!batch) continue;
    for (const MailedMessage& message : batch->messages)
      if (!message.settled) graph[rank].push_back(message.peer);
  }
  return graph;
}

}  // namespace tessera::threads
