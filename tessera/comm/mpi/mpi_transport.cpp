#include "tessera/comm/mpi/mpi_transport.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/station.h"

namespace tessera::mpi {
namespace {

using std::chrono::seconds;

/// Signals are the program's business: none is delivered to the communication thread.
std::thread start_without_signals(std::shared_ptr<Desk> desk, const Options& options) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([desk, options] { Station(desk, options).run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

std::unique_ptr<StartedBatch> prepare(const std::vector<PostedMessage>& messages) {
  auto started = std::make_unique<StartedBatch>();
  for (const PostedMessage& message : messages)
    started->messages.push_back({message, started.get()});
  started->num_unsettled = std::ssize(started->messages);
  return started;
}

}  // namespace

MpiTransport::MpiTransport(const Options& requested) {
  Options options = requested;
  options.timeout = std::min(options.timeout, kLongestTimeout);
  desk_ = std::make_shared<Desk>(std::max<Clock::duration>(options.timeout, seconds(10)));
  thread_ = start_without_signals(desk_, options);
  try {
    desk_->await_start(std::max<Clock::duration>(options.timeout, seconds(60)));
  } catch (...) {
    end_job_at_exit();
    thread_.detach();
    throw;
  }
}

MpiTransport::~MpiTransport() {
  if (thread_.joinable()) end();
}

Ticket MpiTransport::start(const Batch& batch) {
  TESSERA_CHECK(batch.queue == nullptr, "MPI carries the host's memory; a device's has to be staged");
  const std::vector<PostedMessage> messages = posted_messages(batch, *this);
  if (const auto failure = desk_->failure()) throw_failure(*failure);
  const Ticket ticket = next_ticket_++;
  StartedBatch& started = *(started_[ticket] = prepare(messages));
  if (started.num_unsettled > 0) desk_->post(started);
  return ticket;
}

void MpiTransport::finish(Ticket ticket) {
  if (const auto failure = desk_->failure()) throw_failure(*failure);
  const auto found = started_.find(ticket);
  TESSERA_CHECK(found != started_.end(), "rank {}/{} finishes ticket {}, which is not outstanding",
                rank(), size(), ticket);
  if (!desk_->wait(*found->second)) throw_failure(*desk_->failure());
  started_.erase(found);
}

void MpiTransport::abort(const std::string& reason) noexcept {
  desk_->abort(reason);
  started_.clear();
}

void MpiTransport::throw_failure(const Failure& failure) {
  started_.clear();
  throw CommError(failure_text(failure, rank(), size()));
}

void MpiTransport::leave() {
  end();
  if (const auto failure = desk_->failure()) throw_failure(*failure);
}

void MpiTransport::end() noexcept {
  if (!started_.empty())
    abort(fmt::format("it ended while {} batches of it were unfinished", started_.size()));
  if (desk_->leave()) return thread_.join();
  end_job_at_exit();
  thread_.detach();
}

}  // namespace tessera::mpi
