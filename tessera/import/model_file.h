#pragma once
// The bytes of a model file, for a closed child to read, and what the child may spend on them.

#include <string>
#include <string_view>

#include "tessera/files/mapped_file.h"
#include "tessera/import/closed_child.h"

namespace tessera {

class ModelFile {
 public:
  /// Throws InvalidInput unless there is such a file.
  explicit ModelFile(const std::string& path) : path_(path), file_(path) {}

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return {file_.data(), file_.size()}; }
  /// Tensors are read, copied and sent: time and memory grow with the file.
  ChildLimits limits() const {
    ChildLimits limits;
    limits.memory_bytes += 6 * static_cast<int64_t>(file_.size());
    limits.cpu_seconds += static_cast<int>(file_.size() >> 25);
    limits.wall_seconds += static_cast<int>(file_.size() >> 24);
    return limits;
  }

 private:
  std::string path_;
  MappedFile file_;
};

}  // namespace tessera
