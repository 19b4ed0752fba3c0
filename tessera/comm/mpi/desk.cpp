#include "tessera/comm/mpi/desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/process_end.h"

namespace tessera::mpi {

std::string failure_text(const Failure& failure, int rank, int size) {
  if (failure.origin < 0 || failure.origin == rank)
    return fmt::format("[comm] rank {}/{}: {}", rank, size, failure.reason);
  return fmt::format("[comm] rank {}/{}: rank {} failed: {}", rank, size, failure.origin,
                     failure.reason);
}

Desk::Desk(Clock::duration longest_step) : longest_step_(longest_step), last_step_(Clock::now()) {}

// --- the rank's thread ---

/// False when the communication thread has not come by for too long.
bool Desk::wait_until(Lock& lock, const std::function<bool()>& condition) {
  while (!changed_.wait_for(lock, std::chrono::milliseconds(500), condition))
    if (Clock::now() - last_step_ > longest_step_) return false;
  return true;
}

void Desk::wait_or_end_job(Lock& lock, const std::function<bool()>& condition) {
  if (wait_until(lock, condition)) return;
  lock.unlock();
  end_job_now(fmt::format("[comm] rank {}/{}: a call of MPI has not returned for {} s", rank_,
                          size_,
                          std::chrono::duration_cast<std::chrono::seconds>(longest_step_).count()));
}

void Desk::order(Lock& lock) {
  has_orders_ = true;
  lock.unlock();
  ordered_.notify_one();
}

void Desk::await_start(Clock::duration limit) {
  Lock lock(mutex_);
  if (!changed_.wait_for(lock, limit, [this] { return started_ || start_error_; }))
    throw_error<CommError>("[mpi] MPI has not started within {} s: not all ranks came up",
                           std::chrono::duration_cast<std::chrono::seconds>(limit).count());
  if (start_error_) throw_error<CommError>("[mpi] MPI does not start: {}", *start_error_);
}

void Desk::post(StartedBatch& batch) {
  Lock lock(mutex_);
  batch.last_progress = Clock::now();
  orders_.batches.push_back(&batch);
  order(lock);
}

bool Desk::wait(StartedBatch& batch) {
  Lock lock(mutex_);
  waiting_for_ = &batch;
  waiting_since_ = Clock::now();
  wait_or_end_job(lock, [&] { return released_ || (batch.num_unsettled == 0 && !failure_); });
  waiting_for_ = nullptr;
  return !released_;
}

void Desk::abort(const std::string& reason) noexcept {
  Lock lock(mutex_);
  if (!orders_.abort_reason) orders_.abort_reason = reason;
  order(lock);
  lock.lock();
  wait_or_end_job(lock, [this] { return released_ || ended_; });
}

bool Desk::leave() noexcept {
  Lock lock(mutex_);
  orders_.leave = true;
  order(lock);
  lock.lock();
  return wait_until(lock, [this] { return ended_; });
}

std::optional<Failure> Desk::failure() {
  Lock lock(mutex_);
  if (failure_) wait_or_end_job(lock, [this] { return released_; });
  return failure_;
}

bool Desk::has_failed() noexcept {
  Lock lock(mutex_);
  return failure_.has_value();
}

// --- the communication thread ---

void Desk::started(int rank, int size) {
  Lock lock(mutex_);
  rank_ = rank;
  size_ = size;
  started_ = true;
  changed_.notify_all();
}

void Desk::could_not_start(const std::string& reason) {
  Lock lock(mutex_);
  start_error_ = reason;
  changed_.notify_all();
}

Desk::Orders Desk::take_orders() {
  Lock lock(mutex_);
  last_step_ = Clock::now();
  has_orders_ = false;
  Orders taken = orders_;
  orders_.batches.clear();
  return taken;
}

void Desk::doze(Clock::time_point deadline) {
  Lock lock(mutex_);
  ordered_.wait_until(lock, deadline, [this] { return has_orders_; });
}

void Desk::settle(CarriedMessage& message) {
  Lock lock(mutex_);
  message.settled = true;
  message.batch->last_progress = Clock::now();
  if (--message.batch->num_unsettled == 0 && waiting_for_ == message.batch) changed_.notify_all();
}

void Desk::progress(CarriedMessage& message) {
  Lock lock(mutex_);
  message.batch->last_progress = Clock::now();
}

std::optional<Desk::Wait> Desk::current_wait() {
  Lock lock(mutex_);
  if (!waiting_for_ || waiting_for_->num_unsettled == 0) return {};
  Wait wait;
  wait.since = std::max(waiting_since_, waiting_for_->last_progress);
  for (const CarriedMessage& message : waiting_for_->messages)
    if (!message.settled) wait.messages.push_back(message);
  return wait;
}

void Desk::set_failure(Failure failure) {
  Lock lock(mutex_);
  failure_ = std::move(failure);
}

void Desk::release() {
  Lock lock(mutex_);
  released_ = true;
  changed_.notify_all();
}

void Desk::ended() {
  Lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace tessera::mpi
