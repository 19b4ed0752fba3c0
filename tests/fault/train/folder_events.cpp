#include "tests/fault/train/folder_events.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

namespace tessera {

using EventClock = std::chrono::steady_clock;

FolderEvents::FolderEvents(const std::string& folder)
    : descriptor_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  const uint32_t kinds = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
  valid_ = inotify_add_watch(descriptor_, folder.c_str(), kinds) >= 0;
}

FolderEvents::~FolderEvents() { close(descriptor_); }

bool FolderEvents::await_events(int count, Program& program) {
  const EventClock::time_point end = EventClock::now() + kLimit;
  while (seen_ < count && !program.ended() && EventClock::now() < end) {
    pollfd waiting{descriptor_, POLLIN, 0};
    poll(&waiting, 1, 50);
    read_events();
  }
  return seen_ >= count;
}

const std::set<std::string>& FolderEvents::names() {
  read_events();
  return names_;
}

void FolderEvents::read_events() {
  alignas(inotify_event) char buffer[4096];
  for (ssize_t size; (size = read(descriptor_, buffer, sizeof(buffer))) > 0;)
    for (ssize_t at = 0; at < size; ++seen_) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      if (event->len > 0) names_.insert(event->name);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
    }
}

}  // namespace tessera
