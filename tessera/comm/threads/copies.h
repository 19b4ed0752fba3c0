#pragma once
// The copies between two messages that have met: made at once in the host's memory, queued in that
// of devices (mailbox.h).

#include <memory>
#include <vector>

#include "tessera/comm/threads/mailbox.h"

namespace tessera::threads {

/// Throws InternalError, naming the ranks, where a message that has met its partner is in the
/// host's memory at one end and in a device's at the other.
void check_places(const StartedBatch& started);

void copy_on_host(const MailedMessage& own, const MailedMessage& met);

using Moments = std::vector<const DeviceQueue::Moment*>;

/// Copies of one start in its queue, between messages that are settled only after end(). All
/// partners wait for one moment, after the last.
class QueuedCopies {
 public:
  /// Null: there will be none.
  explicit QueuedCopies(DeviceQueue* queue) : queue_(queue) {}

  void add(const MailedMessage& own, MailedMessage& met);
  void end();

 private:
  DeviceQueue* queue_;
  Moments awaited_;
  std::vector<MailedMessage*> waiting_;  // whose queues are others
};

/// What its queue runs next comes after the copies that peers have queued.
void await_copies(const StartedBatch& settled);

/// Host waits until no copy of a batch that is settled or withdrawn is queued or under way.
void let_go(const StartedBatch& batch) noexcept;

/// Null: there is nothing to do. A device that is lost touches nothing any more.
void drain(DeviceQueue* queue) noexcept;

}  // namespace tessera::threads
