#pragma once
// What is found out about each sample once, by whoever asks first; others wait for it. Thread-safe.
//
// Example:
//   PerSample<ClassPositions> classes;
//   classes.get(sample, [&] { return find_classes(data, sample, key); });

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace tessera {

template <class Found>
class PerSample {
 public:
  /// Stays where it is. A find() that throws leaves the next one to try again.
  template <class Find>
  const Found& get(int64_t sample, Find find) {
    Entry& entry = entry_of(sample);
    const std::lock_guard lock(entry.mutex);
    if (!entry.found) entry.found = find();
    return *entry.found;
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::optional<Found> found;
  };
  Entry& entry_of(int64_t sample) {
    const std::lock_guard lock(mutex_);
    return entries_[sample];
  }

  std::mutex mutex_;
  std::map<int64_t, Entry> entries_;
};

}  // namespace tessera
