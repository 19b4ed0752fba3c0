#pragma once
// What the ranks of one process share: mailboxes, desks, and the one reason why the world ended.
// Every transport of the world holds it, so it lives until the last of them is gone.

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/threads/diagnosis.h"
#include "tessera/comm/threads/mailbox.h"
#include "tessera/comm/threads/threads.h"

namespace tessera::threads {

/// The CommError of a rank that ends only because another one failed. run_ranks prefers the
/// other's.
class PeerFailed : public CommError {
 public:
  using CommError::CommError;
};

class World {
 public:
  World(int size, const Options& options);

  int size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  Mailbox& mailbox(int from, int to) { return mailboxes_[static_cast<size_t>(from) * size_ + to]; }
  Desk& desk(int rank) { return desks_[rank]; }

  /// Ends the world because of `rank` and wakes all. Only the first call counts.
  void abort(int rank, const std::string& reason) noexcept;
  bool aborted() const noexcept { return aborted_.load(std::memory_order_acquire); }
  /// Throws on `rank` why the world was aborted: CommError if by itself, else PeerFailed.
  [[noreturn]] void throw_aborted(int rank) const;

  /// `rank` takes part no more. A message that a peer has posted or will post for it can never
  /// match, so it aborts the world at once rather than run into the timeout.
  void leave(int rank) noexcept;
  /// To be called after `message` of `rank` was queued.
  void check_peer_present(int rank, const MailedMessage& message) noexcept;

  WaitGraph wait_graph();

 private:
  void abort_left(int left, int waiting, PostedAs waiting_for, int64_t bytes) noexcept;

  int size_;
  std::chrono::milliseconds timeout_;
  std::vector<Mailbox> mailboxes_;
  std::vector<Desk> desks_;
  std::vector<std::atomic<bool>> left_;

  std::mutex abort_mutex_;
  int aborting_rank_ = -1;  // this and the reason are constant once aborted_ is set
  std::string abort_reason_;
  std::atomic<bool> aborted_{false};
};

}  // namespace tessera::threads
