#include "tessera/data/open_files.h"

#include <unistd.h>

#include <algorithm>

namespace tessera {
namespace {

constexpr long kMostOpen = 64;

/// An eighth of the descriptors: a file may have several, and others need some, too.
size_t descriptors_to_keep() {
  return static_cast<size_t>(std::clamp(sysconf(_SC_OPEN_MAX) / 8, 1L, kMostOpen));
}

}  // namespace

OpenFiles::OpenFiles(ArrayOptions options, size_t most_open)
    : options_(std::move(options)), most_open_(most_open > 0 ? most_open : descriptors_to_keep()) {}

std::shared_ptr<const ArrayFile> OpenFiles::get(const std::string& path) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = places_.find(path); found != places_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->file;
    }
  }
  // Without the lock: opening may take long, and others read other files meanwhile. Where two open
  // the same file, the second one's is kept by nobody but himself.
  std::shared_ptr<const ArrayFile> file = open_array(path, options_);
  const std::lock_guard lock(mutex_);
  if (places_.contains(path)) return file;
  entries_.push_front({path, file});
  places_[path] = entries_.begin();
  if (entries_.size() > most_open_) {
    places_.erase(entries_.back().path);
    entries_.pop_back();
  }
  return file;
}

}  // namespace tessera
