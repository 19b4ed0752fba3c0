#include "tessera/import/model_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "tessera/files/file_error.h"

namespace tessera {

ModelFile::ModelFile(const std::string& path) : file_(path, "model") {
  if (file_.size() == 0) return;
  void* memory =
      ::mmap(nullptr, file_.size(), PROT_READ, MAP_PRIVATE, file_.descriptor(), /*offset=*/0);
  if (memory == MAP_FAILED) throw_file_error("map", path, errno);
  bytes_ = static_cast<const char*>(memory);
}

ModelFile::~ModelFile() {
  if (bytes_ != nullptr) ::munmap(const_cast<char*>(bytes_), file_.size());
}

ChildLimits ModelFile::limits() const {
  ChildLimits limits;
  limits.memory_bytes += 6 * static_cast<int64_t>(file_.size());
  limits.cpu_seconds += static_cast<int>(file_.size() >> 25);
  limits.wall_seconds += static_cast<int>(file_.size() >> 24);
  return limits;
}

}  // namespace tessera
