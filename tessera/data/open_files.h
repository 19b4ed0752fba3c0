#pragma once
// The files of a data set, opened when they are asked for. Only a few stay open, however many there
// are, so that a set of thousands does not exhaust the descriptors of the process; a file that
// somebody still reads stays open until he is done.
//
// Thread-safe.
//
// Example:
//   const OpenFiles files({.level = 1});
//   const std::shared_ptr<const ArrayFile> slide = files.get("slide.svs");

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tessera/images/open_array.h"

namespace tessera {

class OpenFiles {
 public:
  /// Keeps at most `most_open` files; 0: as the process's limit of descriptors allows, at most 64.
  explicit OpenFiles(ArrayOptions options, size_t most_open = 0);

  /// Throws what open_array throws.
  std::shared_ptr<const ArrayFile> get(const std::string& path) const;

 private:
  struct Entry {
    std::string path;
    std::shared_ptr<const ArrayFile> file;
  };

  const ArrayOptions options_;
  const size_t most_open_;
  mutable std::mutex mutex_;
  mutable std::list<Entry> entries_;  // the last used first
  mutable std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace tessera
