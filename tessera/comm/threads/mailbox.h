#pragma once
// Where two ranks meet. Each ordered pair (from, to) has one mailbox with its own lock, so that
// pairs do not disturb each other. A mailbox only matches messages; the copy is made outside its
// lock by the side that comes second:
//
//   first comer                      second comer
//   post(): queued                   post(): takes the first comer's message out: a pair
//   ... finish() waits ...           memcpy, then settle() for both
//
// From post() on a message's memory may be used by the peer until the message is settled. A rank
// that leaves withdraws what is still queued and waits for the rest, which is being copied.
//
// In the memory of devices the copy is queued, and settled means that: it waits in the queue of the
// second comer for `ready` of the first, whose queue in turn waits for `copied`.

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tessera/comm/device_queue.h"
#include "tessera/comm/posted_message.h"

namespace tessera::threads {

struct StartedBatch;

/// Where the thread of one rank waits. The world owns it, so it outlives every batch.
struct Desk {
  std::mutex mutex;
  std::condition_variable changed;
  const StartedBatch* waiting_for = nullptr;  // under `mutex`; for the diagnosis of a stall
};

struct MailedMessage : PostedMessage {
  StartedBatch* batch = nullptr;
  MailedMessage* next = nullptr;     // in the mailbox; under its lock
  MailedMessage* partner = nullptr;  // set on the second comer; only its thread reads it
  bool settled = false;              // under the desk's lock
  // Set on the first comer before it is settled; null where nothing is left to wait for.
  std::shared_ptr<const DeviceQueue::Moment> copied = nullptr;
};

struct StartedBatch {
  Desk* desk = nullptr;
  DeviceQueue* queue = nullptr;                                // of its memory; null: the host's
  std::shared_ptr<const DeviceQueue::Moment> ready = nullptr;  // when the queue had run so far
  std::vector<MailedMessage> messages;  // does not grow after posting: mailboxes point into it
  int64_t num_unsettled = 0;            // under the desk's lock
};

/// Ends the use of a message's memory and wakes its rank when the whole batch is done. The message
/// may be gone when this returns.
void settle(MailedMessage& message);

class Mailbox {
 public:
  /// Takes out and returns the message that this one meets; otherwise queues it and returns null.
  MailedMessage* post(MailedMessage& message);

  /// Takes the message out if it still waits here.
  bool withdraw(const MailedMessage& message);

  /// Size of the first message that waits here, if any.
  std::optional<int64_t> waiting_bytes();

 private:
  std::mutex mutex_;
  // All of one direction: two of different directions would have met. Linked through the messages,
  // so that posting cannot fail and an idle mailbox of a large world costs little.
  MailedMessage* first_ = nullptr;
  MailedMessage* last_ = nullptr;
};

}  // namespace tessera::threads
