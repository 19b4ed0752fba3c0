#pragma once
// A file in memory, read by the system as its pages are touched, so that opening a large file costs
// nothing. Writes to the memory stay private to this process and never reach the file.
//
// The file must not be shortened meanwhile (the system answers with SIGBUS). Tessera's own files
// never are: they are replaced by a rename, which leaves an open mapping as it was.

#include <cstddef>
#include <string>

namespace tessera {

class MappedFile {
 public:
  /// Throws InvalidInput where `path` is not a regular file that can be read.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tessera
