#include "tessera/comm/mpi/station.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/mpi/process_end.h"

namespace tessera::mpi {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kLongestDrain{2'000};     // of chunks on the wire, after a failure
constexpr milliseconds kLongestCancel{500};      // of what is left then
constexpr milliseconds kLongestFarewell{3'000};  // for the others' byes, after a failure

}  // namespace

Station::Station(std::shared_ptr<Desk> desk, const Options& options)
    : desk_(std::move(desk)),
      options_(options),
      heartbeat_(std::max<Clock::duration>(
          milliseconds(1), std::min<Clock::duration>(options.heartbeat, options.timeout / 6))),
      incoming_(kControlBytes) {}

void Station::run() noexcept {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: naps are short
  try {
    wire_ = std::make_unique<Wire>();
  } catch (const std::exception& e) {
    return desk_->could_not_start(e.what());
  }
  try {
    serve();
  } catch (const std::exception& e) {
    // The wire is broken: it is not used any more, so no memory is either.
    if (!failed_) note_failure({wire_->rank(), e.what()}, FailureKind::kFound);
    desk_->release();
    end_job_at_exit();
    while (!desk_->take_orders().leave) desk_->doze(Clock::now() + heartbeat_);
  }
  desk_->ended();
}

void Station::serve() {
  CourierEvents events;
  events.settled = [this](CarriedMessage& message) { desk_->settle(message); };
  events.progressed = [this](CarriedMessage& message) { desk_->progress(message); };
  events.mismatched = [this](const std::string& text) { fail({-1, text}, FailureKind::kFound); };
  courier_.emplace(*wire_, options_.chunk_bytes, std::move(events));
  // Half the timeout, so that the silent rank is named before waits run out of time.
  watch_.emplace(wire_->rank(), wire_->size(), options_.timeout / 2);
  departed_.resize(wire_->size());
  next_beat_ = last_move_ = Clock::now();
  listen();
  desk_->started(wire_->rank(), wire_->size());
  while (step()) {
  }
  close();
}

/// One round of the loop. False: this rank's part is over.
bool Station::step() {
  carry_out(desk_->take_orders());
  const bool moved = wire_->poll() > 0;
  const Clock::time_point now = Clock::now();
  if (failed_) {
    drain(now);
  } else if (now >= next_beat_) {
    next_beat_ = now + heartbeat_;
    look_after_wait(now);
  }
  if (may_end(now)) return false;
  rest(moved);
  return true;
}

void Station::carry_out(const Desk::Orders& orders) {
  if (orders.abort_reason && !failed_)
    fail({wire_->rank(), *orders.abort_reason}, FailureKind::kAborted);
  for (StartedBatch* batch : orders.batches) {
    if (failed_) break;
    courier_->post(*batch);
    for (const CarriedMessage& message : batch->messages) check_departed(message.peer);
  }
  if (orders.leave && !leaving_) say_bye();
}

void Station::listen() {
  wire_->receive(Channel::kControl, kAnyRank, incoming_.data(), kControlBytes,
                 [this](const Arrival& arrival) {
                   if (arrival.cancelled || closing_) return;  // a late answer
                   const Control control = decode(incoming_.data(), arrival.bytes);
                   listen();
                   handle(arrival.from, control);
                 });
}

void Station::handle(int from, const Control& control) {
  watch_->heard(from, Clock::now());
  switch (control.kind) {
    case ControlKind::kPing: {
      Control pong{.kind = ControlKind::kPong};
      if (const auto wait = desk_->current_wait())
        for (const PostedMessage& message : wait->messages) pong.waits_for.push_back(message.peer);
      return tell(from, pong);
    }
    case ControlKind::kPong:
      return watch_->waits_for(from, control.waits_for);
    case ControlKind::kFailure:
      fail({control.origin, control.reason}, FailureKind::kHeard);
      return courier_->peer_stopped(from, control.counts.chunks_sent);
    case ControlKind::kBye:
      departed_[from] = control.counts;
      return check_departed(from);
  }
}

void Station::tell(int peer, const Control& control) {
  const auto data = std::make_shared<std::vector<char>>(encode(control));
  wire_->send(Channel::kControl, peer, data->data(), std::ssize(*data), [data](const Arrival&) {});
}

void Station::tell_all(Control control) {
  for (int peer = 0; peer < wire_->size(); ++peer) {
    if (peer == wire_->rank()) continue;
    control.counts = courier_->counts(peer);
    tell(peer, control);
  }
}

/// Once per heartbeat: have the peers that this rank waits for been heard from, and has it waited
/// too long? A rank that has left waits for those that have not, without a limit while they live.
void Station::look_after_wait(Clock::time_point now) {
  const auto wait = desk_->current_wait();
  std::vector<int> waited_for;
  if (wait)
    for (const PostedMessage& message : wait->messages) waited_for.push_back(message.peer);
  for (int peer = 0; leaving_ && peer < wire_->size(); ++peer)
    if (!departed_[peer]) waited_for.push_back(peer);
  for (int peer : watch_->ask(waited_for, now))
    if (!departed_[peer]) tell(peer, {.kind = ControlKind::kPing});
  if (const auto silence = watch_->silent(now))
    return fail(
        {-1, fmt::format("rank {} has not been heard from for {:.1f} s; it may be stopped or "
                         "its node may be gone",
                         silence->rank, silence->length.count())},
        FailureKind::kFound);
  if (wait && now - wait->since >= options_.timeout)
    fail({wire_->rank(), timeout_text(*wait)}, FailureKind::kFound);
}

std::string Station::timeout_text(const Desk::Wait& wait) const {
  return fmt::format("waited {} ms in vain {}; {}. Look there first, or raise the timeout",
                     options_.timeout.count(), list_messages(wait.messages),
                     threads::explain_stall(watch_->graph(), wire_->rank()));
}

/// A message that a departed rank did not send, or did not receive, fails the world at once.
void Station::check_departed(int peer) {
  if (failed_ || !departed_[peer]) return;
  const PeerCounts& own = courier_->counts(peer);
  const PeerCounts& theirs = *departed_[peer];
  if (own.messages_expected > theirs.messages_sent)
    fail({peer, fmt::format("it ended while rank {} expects {} bytes from it; all ranks must post "
                            "the same messages",
                            wire_->rank(), courier_->expected_bytes(peer, theirs.messages_sent))},
         FailureKind::kFound);
  else if (own.messages_sent > theirs.messages_expected)
    fail({peer, fmt::format("it ended while rank {} has {} more messages for it; all ranks must "
                            "post the same messages",
                            wire_->rank(), own.messages_sent - theirs.messages_expected)},
         FailureKind::kFound);
}

void Station::fail(const Failure& failure, FailureKind kind) {
  if (failed_) return;
  note_failure(failure, kind);
  courier_->stop();
  tell_all({.kind = ControlKind::kFailure, .origin = failure.origin, .reason = failure.reason});
}

void Station::note_failure(const Failure& failure, FailureKind kind) {
  failed_ = true;
  failed_at_ = Clock::now();
  record_failure(kind, failure_text(failure, wire_->rank(), wire_->size()));
  desk_->set_failure(failure);
}

/// Ranks that are alive bring their chunks home or say that there are none; what a dead one leaves
/// is cancelled. A receive that MPI does not give back could still be written to.
void Station::drain(Clock::time_point now) {
  if (released_) return;
  const auto passed = now - failed_at_;
  if (passed >= kLongestDrain) courier_->cancel_receives();
  if (passed >= kLongestDrain + kLongestCancel && courier_->receiving())
    end_job_now(fmt::format("[comm] rank {}/{}: {}", wire_->rank(), wire_->size(),
                            "a message was under way from a rank that does not answer any more"));
  if (!courier_->idle() && (passed < kLongestDrain || courier_->receiving())) return;
  released_ = true;
  desk_->release();
}

void Station::say_bye() {
  leaving_ = true;
  left_at_ = Clock::now();
  tell_all({.kind = ControlKind::kBye});
  departed_[wire_->rank()] = courier_->counts(wire_->rank());
  check_departed(wire_->rank());
}

bool Station::all_departed() const {
  return std::all_of(departed_.begin(), departed_.end(), [](const auto& bye) { return !!bye; });
}

bool Station::may_end(Clock::time_point now) const {
  if (!leaving_ || (failed_ && !released_)) return false;
  return all_departed() || (failed_ && now - std::max(left_at_, failed_at_) >= kLongestFarewell);
}

void Station::close() {
  if (!all_departed()) return end_job_at_exit();
  closing_ = true;
  wire_->cancel_receives();
  const Clock::time_point limit = Clock::now() + kLongestDrain;
  while (wire_->num_pending() > 0 && Clock::now() < limit)
    if (wire_->poll() == 0) std::this_thread::yield();
  if (wire_->num_pending() > 0) end_job_at_exit();
}

/// The longer nothing has moved, the longer the nap: an eighth of the silence, so that polling adds
/// at most an eighth to any wait, and a thread that waits for long takes next to no time from the
/// kernels. While data are on the wire MPI needs us to move them, so naps stay short.
void Station::rest(bool moved) {
  constexpr microseconds kSpin{20}, kLongestNap{1'000}, kLongestDataNap{10};
  constexpr int64_t kListening = 1;
  const Clock::time_point now = Clock::now();
  if (moved) {
    last_move_ = now;
    return;
  }
  const bool busy =
      failed_ ? !released_ || leaving_ : leaving_ || wire_->num_pending() > kListening;
  if (!busy) return desk_->doze(now >= next_beat_ ? now + heartbeat_ : next_beat_);
  const auto silence = now - last_move_;
  if (silence < kSpin) return std::this_thread::yield();
  const Clock::duration longest = courier_->idle() ? kLongestNap : kLongestDataNap;
  desk_->doze(now + std::min<Clock::duration>(silence / 8, longest));
}

}  // namespace tessera::mpi
