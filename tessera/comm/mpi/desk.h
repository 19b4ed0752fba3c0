#pragma once
// Where the rank's thread and the communication thread meet: orders one way, settled messages and
// the end of the world the other way. The rank's thread never waits here for ever: the
// communication thread keeps the timeouts, and if that is stuck inside MPI itself, the job ends.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tessera/comm/mpi/batch.h"

namespace tessera::mpi {

struct Failure {
  int origin = -1;  // the rank that failed; -1: the reason names it
  std::string reason;
};

/// "[comm] rank 1/4: rank 2 failed: reason", or without the middle part where it is this rank.
std::string failure_text(const Failure& failure, int rank, int size);

class Desk {
 public:
  /// `longest_step`: beyond it, a step of the communication thread counts as stuck.
  explicit Desk(Clock::duration longest_step);

  // --- the rank's thread ---

  /// Waits until MPI runs. Throws CommError when it does not, also when `limit` has passed.
  void await_start(Clock::duration limit);
  int rank() const { return rank_; }
  int size() const { return size_; }
  void post(StartedBatch& batch);
  /// Waits until the batch is settled (true) or the world has failed and let go of all memory
  /// (false).
  bool wait(StartedBatch& batch);
  /// Waits until the world has failed and let go of all memory.
  void abort(const std::string& reason) noexcept;
  /// Waits until the communication thread has ended. False: it is stuck.
  bool leave() noexcept;
  /// Why the world has failed, if it has; then no memory is in use any more when this returns.
  std::optional<Failure> failure();
  /// The same for any thread, which is not to wait.
  bool has_failed() noexcept;

  // --- the communication thread ---

  struct Orders {
    std::vector<StartedBatch*> batches;
    std::optional<std::string> abort_reason;
    bool leave = false;
  };
  /// What the rank's thread is waiting for: the messages that have not moved yet.
  struct Wait {
    std::vector<PostedMessage> messages;
    Clock::time_point since;  // nothing has moved since then
  };

  void started(int rank, int size);
  void could_not_start(const std::string& reason);
  Orders take_orders();
  /// Sleeps until `deadline` or the next order.
  void doze(Clock::time_point deadline);
  void settle(CarriedMessage& message);
  void progress(CarriedMessage& message);
  std::optional<Wait> current_wait();
  void set_failure(Failure failure);
  void release();
  void ended();

 private:
  using Lock = std::unique_lock<std::mutex>;
  bool wait_until(Lock& lock, const std::function<bool()>& condition);
  void wait_or_end_job(Lock& lock, const std::function<bool()>& condition);
  void order(Lock& lock);

  int rank_ = 0;
  int size_ = 0;

  std::mutex mutex_;  // of all below
  const Clock::duration longest_step_;
  std::condition_variable ordered_;
  std::condition_variable changed_;
  Orders orders_;
  bool has_orders_ = false;
  StartedBatch* waiting_for_ = nullptr;
  Clock::time_point waiting_since_;
  Clock::time_point last_step_;  // when the communication thread last came by
  std::optional<Failure> failure_;
  std::optional<std::string> start_error_;
  bool started_ = false;
  bool released_ = false;
  bool ended_ = false;
};

}  // namespace tessera::mpi
