#include "tessera/comm/threads/copies.h"

#include <algorithm>
#include <cstring>

#include "tessera/base/error.h"

namespace tessera::threads {
namespace {

/// Many messages share a moment.
void wait_once(DeviceQueue& queue, const DeviceQueue::Moment* moment, Moments* awaited) {
  if (std::find(awaited->begin(), awaited->end(), moment) != awaited->end()) return;
  queue.wait_for(*moment);
  awaited->push_back(moment);
}

}  // namespace

void check_places(const StartedBatch& started) {
  for (const MailedMessage& own : started.messages) {
    if (!own.partner) continue;
    const MailedMessage& send = own.as == PostedAs::kSend ? own : *own.partner;
    const MailedMessage& receive = own.as == PostedAs::kSend ? *own.partner : own;
    const auto place = [](const MailedMessage& message) {
      return message.batch->queue ? "a device's" : "the host's";
    };
    TESSERA_CHECK((send.batch->queue == nullptr) == (receive.batch->queue == nullptr),
                  "a message of {} bytes is in {} memory at its sender, rank {}, and in {} at its "
                  "receiver, rank {}",
                  send.bytes, place(send), receive.peer, place(receive), send.peer);
  }
}

void copy_on_host(const MailedMessage& own, const MailedMessage& met) {
  const bool sends = own.as == PostedAs::kSend;
  std::memcpy((sends ? met : own).target, (sends ? own : met).source,
              static_cast<size_t>(own.bytes));
}

void QueuedCopies::add(const MailedMessage& own, MailedMessage& met) {
  if (met.batch->queue != queue_) {
    wait_once(*queue_, met.batch->ready.get(), &awaited_);
    waiting_.push_back(&met);
  }
  const bool sends = own.as == PostedAs::kSend;
  queue_->copy((sends ? met : own).target, (sends ? own : met).source, own.bytes);
}

void QueuedCopies::end() {
  if (waiting_.empty()) return;
  const auto copied = queue_->now();
  for (MailedMessage* met : waiting_) met->copied = copied;
}

void await_copies(const StartedBatch& settled) {
  Moments awaited;
  for (const MailedMessage& message : settled.messages)
    if (message.copied) wait_once(*settled.queue, message.copied.get(), &awaited);
}

void drain(DeviceQueue* queue) noexcept {
  try {
    if (queue) queue->drain();
  } catch (const std::exception&) {
    // Its error was seen before, or ends the work that comes next.
  }
}

void let_go(const StartedBatch& batch) noexcept {
  if (!batch.queue) return;
  try {
    await_copies(batch);
  } catch (const std::exception&) {
    // As drain().
  }
  drain(batch.queue);
}

}  // namespace tessera::threads
