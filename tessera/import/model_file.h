#pragma once
// The bytes of a model file, for a closed child to read, and what the child may spend on them. They
// are mapped, so that they exist once; nobody but the child touches them, since the system answers
// a file that has shrunk with SIGBUS.

#include <string>
#include <string_view>

#include "tessera/files/input_file.h"
#include "tessera/import/closed_child.h"

namespace tessera {

class ModelFile {
 public:
  /// Throws InvalidInput unless there is such a regular file.
  explicit ModelFile(const std::string& path);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  ~ModelFile();

  const std::string& path() const { return file_.path(); }
  /// For the child.
  std::string_view bytes() const { return {bytes_, static_cast<size_t>(file_.size())}; }
  /// Tensors are read, copied and sent: time and memory grow with the file.
  ChildLimits limits() const;

 private:
  InputFile file_;
  const char* bytes_ = nullptr;
};

}  // namespace tessera
