#include "tessera/comm/threads/mailbox.h"

namespace tessera::threads {

void settle(MailedMessage& message) {
  Desk& desk = *message.batch->desk;
  bool last = false;
  {
    std::lock_guard lock(desk.mutex);
    message.settled = true;
    last = --message.batch->num_unsettled == 0;
  }
  if (last) desk.changed.notify_all();
}

MailedMessage* Mailbox::post(MailedMessage& message) {
  std::lock_guard lock(mutex_);
  if (first_ && first_->as != message.as) {
    MailedMessage* met = first_;
    first_ = met->next;
    if (!first_) last_ = nullptr;
    return met;
  }
  (last_ ? last_->next : first_) = &message;
  last_ = &message;
  return nullptr;
}

bool Mailbox::withdraw(const MailedMessage& message) {
  std::lock_guard lock(mutex_);
  MailedMessage* previous = nullptr;
  for (MailedMessage* here = first_; here; previous = here, here = here->next) {
    if (here != &message) continue;
    (previous ? previous->next : first_) = here->next;
    if (last_ == here) last_ = previous;
    return true;
  }
  return false;
}

std::optional<int64_t> Mailbox::waiting_bytes() {
  std::lock_guard lock(mutex_);
  if (!first_) return std::nullopt;
  return first_->bytes;
}

}  // namespace tessera::threads
